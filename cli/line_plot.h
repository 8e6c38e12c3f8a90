// A small line plot as SVG, which follows the page's light or dark colours.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace troika::cli {

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct LinePlot {
  std::string title;
  std::string x;  // what the axis shows
  std::string y;
  std::vector<PlotLine> lines;
  bool log_x = false;  // else from 0
};

// The rules that the plots of a page need, for its <style>.
std::string line_plot_style();
// At most 5 lines have colours of their own. Points that are not finite are left out.
std::string line_plot_svg(const LinePlot& plot);

}  // namespace troika::cli
