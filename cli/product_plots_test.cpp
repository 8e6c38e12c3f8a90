#include "cli/product_plots.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cli/line_plot.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(ProductPlots, AreThreeForAChipWithStaticGraphs) {
  const cost::DescribedCost chip(*soc::find("snapdragon-8-gen-3"));
  const std::string html = product_plots_html(chip);
  EXPECT_EQ(count(html, "<svg "), 3u);
  EXPECT_EQ(count(html, "<polyline"), 12u);  // two lines each, and their keys
  EXPECT_NE(html.find("is 6.0 times as fast"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_TRUE(product_plots_html(cost::DescribedCost(*soc::find("ryzen-ai-7-350"))).empty());
}

TEST(LinePlot, LeavesOutWhatIsNotFiniteAndEscapesTexts) {
  LinePlot plot{"a < b", "x", "y", {{"one", {{0, 1}, {1, NAN}, {2, 3}}}}, false};
  const std::string svg = line_plot_svg(plot);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  plot.lines.clear();
  EXPECT_TRUE(line_plot_svg(plot).empty());
}

}  // namespace
}  // namespace troika::cli
