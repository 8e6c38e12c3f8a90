#include "cli/gallery_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "cli/page_text.h"
#include "cli/text.h"
#include "troika/base/trace_summary.h"

namespace troika::cli {
namespace {

constexpr int kWidth = 580;  // of a timeline, in pixels
constexpr int kLaneHeight = 14;

// Of input, G1, A, G2, head and anything else.
constexpr std::array kColors = {"#8d99ae", "#4c78a8", "#e4a03b", "#59a14f", "#b07aa1", "#9c9c9c"};

constexpr const char* kStyle = R"(<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
       color: #222; background: #fff; }
h2 { margin: 2em 0 .2em; } .stack { color: #666; margin: 0 0 .8em; }
table { border-collapse: collapse; } td, th { padding: .25em .6em; text-align: right;
       vertical-align: top; } td:first-child, th:first-child { text-align: left; }
th { font-weight: 600; color: #555; } tr + tr td { border-top: 1px solid #eee; }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
svg text { font: 10px system-ui, sans-serif; fill: #555; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1d; }
  .stack, th { color: #999; } tr + tr td { border-color: #333; } svg text { fill: #aaa; } }
</style>
)";

std::string escaped(const std::string& text) { return html_escaped(valid_utf8(text)); }

size_t color_of(const TraceEvent& event) {
  return std::min(static_cast<size_t>(trace_stage(event)), kColors.size() - 1);
}

// What a unit did in each pixel of the prefill: the stage that took most of it, if it was at work
// for half of the pixel at least.
std::vector<int> lane_pixels(const Trace& trace, const std::string& device, double ms,
                             double full_ms) {
  const int pixels = std::clamp(static_cast<int>(std::lround(kWidth * ms / full_ms)), 1, kWidth);
  const double ns_per_pixel = ms * 1e6 / pixels;
  std::vector<std::array<double, kColors.size()>> part(static_cast<size_t>(pixels));
  for (const TraceEvent& event : trace.events) {
    if (event.device != device || event.pass != 0) continue;
    const double begin = static_cast<double>(event.start.count());
    const double end = static_cast<double>(event.end.count());
    const int first = std::clamp(static_cast<int>(begin / ns_per_pixel), 0, pixels - 1);
    const int last = std::clamp(static_cast<int>(end / ns_per_pixel), first, pixels - 1);
    for (int pixel = first; pixel <= last; ++pixel) {
      const double from = std::max(begin, pixel * ns_per_pixel);
      const double to = std::min(end, (pixel + 1) * ns_per_pixel);
      part[static_cast<size_t>(pixel)][color_of(event)] += std::max(0.0, to - from);
    }
  }
  std::vector<int> colors;
  for (const auto& stages : part) {
    const auto most = std::max_element(stages.begin(), stages.end());
    double all = 0;
    for (const double one : stages) all += one;
    colors.push_back(2 * all < ns_per_pixel ? -1 : static_cast<int>(most - stages.begin()));
  }
  return colors;
}

std::string lane_svg(const std::vector<int>& pixels, int y) {
  std::string svg;
  for (size_t begin = 0; begin < pixels.size();) {
    size_t end = begin + 1;
    while (end < pixels.size() && pixels[end] == pixels[begin]) ++end;
    if (pixels[begin] >= 0) {
      svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                         60 + begin, y, end - begin, kLaneHeight - 3,
                         kColors[static_cast<size_t>(pixels[begin])]);
    }
    begin = end;
  }
  return svg;
}

std::string timeline_svg(const forecast::Answer& answer, double full_ms) {
  std::vector<std::string> units;
  for (const forecast::UnitUse& unit : answer.units) {
    if (unit.prefill_busy_ms > 0) units.push_back(unit.name);
  }
  const int height = kLaneHeight * static_cast<int>(units.size()) + 2;
  std::string svg = fmt::format(
      "<svg width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"timeline\">", kWidth + 64, height);
  int y = 1;
  for (const std::string& unit : units) {
    svg += fmt::format("<text x=\"0\" y=\"{}\">{}</text>", y + kLaneHeight - 5, escaped(unit));
    svg +=
        fmt::format("<line x1=\"60\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#8885\"/>",
                    y + kLaneHeight - 2, 60 + static_cast<int>(kWidth * answer.ttft_ms / full_ms));
    svg += lane_svg(lane_pixels(*answer.trace, unit, answer.ttft_ms, full_ms), y);
    y += kLaneHeight;
  }
  return svg + "</svg>";
}

std::string row_html(const GalleryRow& row, double full_ms) {
  if (!row.answer) {
    return fmt::format("<tr><td>{}</td><td colspan=\"5\">cannot be: {}</td></tr>\n",
                       escaped(row.strategy), escaped(row.error));
  }
  const forecast::Answer& answer = *row.answer;
  return fmt::format(
      "<tr><td>{}</td><td>{:.1f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{}</td></"
      "tr>\n",
      escaped(row.strategy), answer.ttft_ms, answer.ttft_ms / answer.bound_ms(),
      answer.decode_tok_s, answer.energy_j, timeline_svg(answer, full_ms));
}

std::string group_html(const GalleryGroup& group) {
  double full_ms = 1e-9;
  for (const GalleryRow& row : group.rows) {
    if (row.answer) full_ms = std::max(full_ms, row.answer->ttft_ms);
  }
  std::string html = fmt::format(
      "<h2>{}</h2>\n<p class=\"stack\">{}</p>\n<table>\n<tr><th>strategy</th><th>TTFT, ms</th>"
      "<th>of the bound</th><th>tok/s</th><th>J</th><th></th></tr>\n",
      escaped(group.title), escaped(group.stack));
  for (const GalleryRow& row : group.rows) html += row_html(row, full_ms);
  return html + "</table>\n";
}

}  // namespace

std::string gallery_page(const std::string& heading, const std::vector<GalleryGroup>& groups) {
  std::string key;
  constexpr std::array kNames = {"input", "G1", "attention", "G2", "head"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    key += fmt::format("<span style=\"background:{}\"></span>{}", kColors[i], kNames[i]);
  }
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Strategies side by "
      "side</title>\n{}</head><body>\n<h1>Strategies side by side</h1>\n<p>{} Simulated from "
      "descriptions, not measured. Each timeline is the prefill; those of one chip and model have "
      "the same scale.</p>\n<p class=\"key\">{}</p>\n",
      kStyle, escaped(heading), key);
  for (const GalleryGroup& group : groups) page += group_html(group);
  return page + "</body></html>\n";
}

}  // namespace troika::cli
