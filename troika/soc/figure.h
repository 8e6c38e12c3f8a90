// Figure: a number of a chip's description with where it comes from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troika::soc {

enum class FigureKind {
  kMeasured,   // on the chip, by Troika
  kPublished,  // printed by others who measured it
  kVendor,     // printed by the maker, not checked
  kFitted,     // derived or chosen so that published results come out
};
std::string_view to_string(FigureKind kind);

// The unit is that of the field, and stands in the file beside the value.
struct Figure {
  double value = 0;
  FigureKind kind = FigureKind::kFitted;
  std::string source;

  operator double() const { return value; }
};

struct FigureList {
  std::vector<double> values;  // ascending
  FigureKind kind = FigureKind::kFitted;
  std::string source;
};

// A figure that depends on how many tokens there are at once. `tokens` are ascending, at least one,
// and have a value each.
struct FigureCurve {
  std::vector<double> tokens;
  std::vector<double> values;
  FigureKind kind = FigureKind::kFitted;
  std::string source;
};

}  // namespace troika::soc
