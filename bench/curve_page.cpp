#include "bench/curve_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace troika::bench {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 60;
constexpr double kBottom = 40;
constexpr std::array<const char*, 6> kColours = {"#1b6ca8", "#d1495b", "#3a7d44",
                                                 "#edae49", "#6a4c93", "#444444"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

// From the power of ten below the least value to the one above the largest.
struct Axis {
  int first = 0;
  int last = 1;

  void include(double value) {
    const double exponent = std::log10(value);
    const int low = static_cast<int>(std::floor(exponent));
    const int high = static_cast<int>(std::ceil(exponent));
    first = empty ? low : std::min(first, low);
    last = empty ? std::max(high, low + 1) : std::max({last, high, first + 1});
    empty = false;
  }
  double part(double value) const { return (std::log10(value) - first) / (last - first); }

  bool empty = true;
};

std::string chart_svg(const Chart& chart) {
  Axis across;
  Axis up;
  for (const Curve& curve : chart.curves) {
    for (const auto& [x, y] : curve.points) {
      across.include(x);
      up.include(y);
    }
  }
  const auto x_of = [&](double value) { return kLeft + across.part(value) * kWidth; };
  const auto y_of = [&](double value) { return (1 - up.part(value)) * kHeight + 10; };
  std::string svg = fmt::format("<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\">\n", escaped(chart.title),
                                kLeft + kWidth + 20, kHeight + kBottom + 20);
  for (int i = across.first; i <= across.last; ++i) {
    const double x = x_of(std::pow(10.0, i));
    svg += fmt::format(
        "<path class=\"g\" d=\"M{0:.1f} 10V{1}\"/><text x=\"{0:.1f}\" y=\"{2}\">1e{3}</text>\n", x,
        kHeight + 10, kHeight + 26, i);
  }
  for (int i = up.first; i <= up.last; ++i) {
    const double y = y_of(std::pow(10.0, i));
    svg += fmt::format(
        "<path class=\"g\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"28\" y=\"{1:.1f}\">1e{3}</text>\n",
        kLeft, y, kLeft + kWidth, i);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text><text x=\"110\" y=\"22\">{}</text>\n",
                     kLeft + kWidth / 2, kHeight + kBottom + 8, escaped(chart.across),
                     escaped(chart.up));
  std::string legend = "<p>";
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const char* const colour = kColours[i % kColours.size()];
    std::string path;
    for (const auto& [x, y] : chart.curves[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(x), y_of(y));
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x_of(x),
                         y_of(y), colour);
    }
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path,
                       colour);
    legend += fmt::format("<b style=\"color:{}\">&#9632;</b> {} &nbsp; ", colour,
                          escaped(chart.curves[i].name));
  }
  return svg + "</svg>\n" + legend + "</p>\n";
}

}  // namespace

std::string curve_page(const std::string& title, const std::string& note,
                       const std::vector<Chart>& charts) {
  std::string page = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>"
      "body{{font:15px sans-serif;max-width:760px;margin:2em auto;padding:0 1em}}"
      "svg{{width:100%}}text{{font-size:12px;text-anchor:middle}}.g{{stroke:#ddd}}</style>\n"
      "<h1>{0}</h1><p>{1}</p>\n",
      escaped(title), escaped(note));
  for (const Chart& chart : charts) page += chart_svg(chart);
  return page + "</html>\n";
}

}  // namespace troika::bench
