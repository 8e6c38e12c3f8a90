#include "cli/line_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/page_text.h"

namespace troika::cli {
namespace {

constexpr double kWidth = 520;
constexpr double kHeight = 300;
constexpr double kLeft = 64;
constexpr double kRight = 500;
constexpr double kTop = 48;
constexpr double kBottom = 252;
constexpr size_t kColors = 5;

// 1, 2 or 5 times a power of ten, so that about five fit.
double step_of(double range) {
  const double rough = range / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

struct Scale {
  double low = 0;
  double high = 1;
  double from = 0;  // pixels
  double to = 1;
  bool log = false;

  double at(double value) const {
    const double part =
        log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + part * (to - from);
  }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (log) {
      for (double value = low; value <= high * 1.0001; value *= 2) ticks.push_back(value);
      return ticks;
    }
    const double step = step_of(high - low);
    for (double value = low; value <= high * 1.0001; value += step) ticks.push_back(value);
    return ticks;
  }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     html_escaped(text));
}

std::string axes(const LinePlot& plot, const Scale& x, const Scale& y) {
  std::string svg;
  for (const double tick : y.ticks()) {
    svg += fmt::format("<line class=\"grid\" x1=\"{0}\" y1=\"{2:.1f}\" x2=\"{1}\" y2=\"{2:.1f}\"/>",
                       kLeft, kRight, y.at(tick));
    svg += text_at(kLeft - 6, y.at(tick) + 3.5, "end", fmt::format("{:g}", tick));
  }
  for (const double tick : x.ticks()) {
    svg += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>",
                       x.at(tick), kBottom, kBottom + 4);
    svg += text_at(x.at(tick), kBottom + 16, "middle", fmt::format("{:g}", tick));
  }
  svg += fmt::format("<line class=\"axis\" x1=\"{0}\" y1=\"{2}\" x2=\"{1}\" y2=\"{2}\"/>", kLeft,
                     kRight, kBottom);
  svg += text_at((kLeft + kRight) / 2, kBottom + 34, "middle", plot.x);
  svg += text_at(kLeft - 56, kTop - 32, "start", plot.y);
  return svg;
}

}  // namespace

std::string line_plot_style() {
  return ".plot{max-width:100%;height:auto}.plot text{font:11px system-ui,sans-serif;fill:#444}"
         ".plot .grid{stroke:#0002}.plot .axis{stroke:#555}.plot polyline{fill:none;stroke-width:2}"
         ".plot .c0{stroke:#4c78a8}.plot .c1{stroke:#d17a22}.plot .c2{stroke:#59a14f}"
         ".plot .c3{stroke:#b07aa1}.plot .c4{stroke:#888}.plots{display:flex;flex-wrap:wrap;"
         "gap:1em 2em}.plots figure{margin:0}.plots figcaption{max-width:32em}"
         "@media(prefers-color-scheme:dark){.plot text{fill:#bbb}.plot .grid{stroke:#fff2}"
         ".plot .axis{stroke:#999}.plot .c0{stroke:#7aa6d8}.plot .c1{stroke:#f0a050}}";
}

std::string line_plot_svg(const LinePlot& plot) {
  const auto usable = [&](const std::pair<double, double>& point) {
    return std::isfinite(point.first) && std::isfinite(point.second) && point.second >= 0 &&
           point.first >= 0 && (!plot.log_x || point.first > 0);
  };
  Scale x{plot.log_x ? HUGE_VAL : 0, 0, kLeft, kRight, plot.log_x};
  Scale y{0, 0, kBottom, kTop, false};
  for (const PlotLine& line : plot.lines) {
    for (const auto& point : line.points) {
      if (!usable(point)) continue;
      x.low = std::min(x.low, point.first);
      x.high = std::max(x.high, point.first);
      y.high = std::max(y.high, point.second);
    }
  }
  if (!(x.high > x.low) || !(y.high > 0)) return {};
  const double step = step_of(y.high);
  y.high = std::ceil(y.high / step) * step;
  std::string svg = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"{2}\">",
      kWidth, kHeight, html_escaped(plot.title));
  svg += axes(plot, x, y);
  double key_x = kLeft + 8;
  for (size_t i = 0; i < plot.lines.size(); ++i) {
    const size_t color = std::min(i, kColors - 1);
    svg += fmt::format("<polyline class=\"c{}\" points=\"", color);
    for (const auto& point : plot.lines[i].points) {
      if (usable(point))
        svg += fmt::format("{:.1f},{:.1f} ", x.at(point.first), y.at(point.second));
    }
    svg += "\"/>";
    svg += fmt::format("<polyline class=\"c{0}\" points=\"{1:.0f},{3:.0f} {2:.0f},{3:.0f}\"/>",
                       color, key_x, key_x + 16, kTop - 14);
    svg += text_at(key_x + 20, kTop - 10, "start", plot.lines[i].name);
    key_x += 34 + 6.2 * static_cast<double>(plot.lines[i].name.size());
  }
  return svg + "</svg>";
}

}  // namespace troika::cli
