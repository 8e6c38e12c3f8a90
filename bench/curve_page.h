// A page of line charts, of one file that needs nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troika::bench {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // positive, ascending in the first
};

// Both axes are logarithmic.
struct Chart {
  std::string title;
  std::string across;
  std::string up;
  std::vector<Curve> curves;
};

std::string curve_page(const std::string& title, const std::string& note,
                       const std::vector<Chart>& charts);

}  // namespace troika::bench
