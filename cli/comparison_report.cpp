#include "cli/comparison_report.h"

#include <cmath>
#include <map>

#include "cli/line_plot.h"
#include "cli/page_text.h"

namespace troika::cli {
namespace {

using published::Case;
using reproduce::Comparison;
using reproduce::MeanError;
using reproduce::Row;

// Three digits, or more where a number has them before the point.
std::string number(double value) {
  const double size = std::abs(value);
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return size == 0 ? "0" : fmt::format("{:.3g}", value);
}

std::string published_text(const Case& one) {
  // As it was printed.
  std::string text = fmt::format("{}", one.published);
  if (one.published_to) text += fmt::format(" to {}", *one.published_to);
  return text;
}

bool in_points(const Case& one) {
  const std::string_view unit = published::unit_of(one.metric);
  return unit == "share" || unit == "%";
}

std::string error_text(const Row& row) {
  if (!row.simulated) return "-";
  return fmt::format("{:+.1f}{}", row.error_pct, in_points(row.figure) ? " points" : " %");
}

std::string_view use(const Case& one) {
  if (!one.left_out.empty()) return "left out";
  if (one.calibrated) return "calibrates";
  return one.described ? "described" : "validates";
}

std::string mean_text(const char* what, const MeanError& mean) {
  return fmt::format("{}: {} figures, mean absolute error {:.1f} %, {} above 25 %", what,
                     mean.count, mean.mean_pct, mean.above_25);
}

// The papers of the rows, in their order.
std::vector<std::string> papers_of(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Row& row : comparison.rows) {
    if (names.empty() || names.back() != row.paper) names.push_back(row.paper);
  }
  return names;
}

std::string markdown_table(const Comparison& comparison, const std::string& paper) {
  std::string text =
      "| case | published | simulated | unit | error | use |\n|---|---|---|---|---|---|\n";
  for (const Row& row : comparison.rows) {
    if (row.paper != paper) continue;
    const Case& one = row.figure;
    text += fmt::format("| {} | {}{} | {} | {} | {} | {} |\n", one.name, published_text(one),
                        one.mark == published::Mark::kDerived ? " (derived)" : "",
                        row.simulated ? number(*row.simulated) : "-",
                        published::unit_of(one.metric), error_text(row), use(one));
  }
  return text;
}

std::string markdown_reasons(const Comparison& comparison) {
  std::string text;
  for (const Row& row : comparison.rows) {
    if (!row.figure.why_off.empty()) {
      text += fmt::format("- **{} {}** ({}): {}.\n", row.paper, row.figure.name, error_text(row),
                          row.figure.why_off);
    }
  }
  return text.empty() ? std::string("None.\n") : text;
}

std::string markdown_left_out(const Comparison& comparison) {
  std::string text;
  std::string last;
  for (const Row& row : comparison.rows) {
    const Case& one = row.figure;
    if (one.left_out.empty()) continue;
    const bool another = one.left_out != last;
    if (another && !last.empty()) text += fmt::format(": {}.\n", last);
    text += fmt::format("{}{}", another ? "- " : ", ", one.name);
    last = one.left_out;
  }
  if (!last.empty()) text += fmt::format(": {}.\n", last);
  return text.empty() ? std::string("Nothing.\n") : text;
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text = fmt::format("{:14} {:38} {:>18} {:>10} {:6} {:>14}  {}\n", "paper", "case",
                                 "published", "simulated", "unit", "error", "use");
  for (const Row& row : comparison.rows) {
    text += fmt::format("{:14} {:38} {:>18} {:>10} {:6} {:>14}  {}\n", row.paper, row.figure.name,
                        published_text(row.figure), row.simulated ? number(*row.simulated) : "-",
                        published::unit_of(row.figure.metric), error_text(row), use(row.figure));
  }
  text += fmt::format("\n{}\n", mean_text("calibration", comparison.calibration));
  text += fmt::format("{}\n", mean_text("validation", comparison.validation));
  text += "All that is not published is simulated.\n";
  return text;
}

Json comparison_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const Row& row : comparison.rows) {
    const Case& one = row.figure;
    Json object = {{"paper", row.paper}, {"case", one.name}};
    object["metric"] = published::to_string(one.metric);
    object["input"] = Json::parse(one.input_text);
    if (!one.against_text.empty()) object["against"] = Json::parse(one.against_text);
    object["published"] = one.published;
    if (one.published_to) object["published_to"] = *one.published_to;
    object["simulated"] = row.simulated ? Json(*row.simulated) : Json(nullptr);
    object["error_pct"] = row.simulated ? Json(row.error_pct) : Json(nullptr);
    object["calibrated"] = one.calibrated;
    object["described"] = one.described;
    object["unit"] = published::unit_of(one.metric);
    object["source"] = one.source;
    if (!one.left_out.empty()) object["left_out"] = one.left_out;
    if (!one.why_off.empty()) object["why_off"] = one.why_off;
    rows.push_back(std::move(object));
  }
  const auto mean = [](const MeanError& one) {
    return Json{{"figures", one.count},
                {"mean_abs_error_pct", one.mean_pct},
                {"above_25_pct", one.above_25}};
  };
  return {{"simulated", true},
          {"calibration", mean(comparison.calibration)},
          {"validation", mean(comparison.validation)},
          {"cases", std::move(rows)}};
}

Json error_bands_json(const Comparison& comparison) {
  struct Band {
    int64_t cases = 0;
    double sum_pct = 0;
    double most_pct = 0;
  };
  std::map<std::pair<std::string, std::string>, Band> bands;
  for (const Row& row : comparison.rows) {
    if (!row.simulated || row.figure.calibrated || row.figure.described) continue;
    Band& band = bands[{row.figure.input.soc, row.figure.input.stack}];
    ++band.cases;
    band.sum_pct += std::abs(row.error_pct);
    band.most_pct = std::max(band.most_pct, std::abs(row.error_pct));
  }
  const auto rounded = [](double value) { return std::round(10 * value) / 10; };
  Json list = Json::array();
  constexpr int64_t kLeastCases = 2;  // one says nothing of a chip
  for (const auto& [key, band] : bands) {
    if (band.cases < kLeastCases) continue;
    list.push_back({{"soc", key.first},
                    {"stack", key.second},
                    {"cases", band.cases},
                    {"mean_error_pct", rounded(band.sum_pct / static_cast<double>(band.cases))},
                    {"largest_error_pct", rounded(band.most_pct)}});
  }
  return {{"version", 1}, {"bands", std::move(list)}};
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string text =
      "# Validation\n\n"
      "Published figures beside what the simulator makes of the descriptions in `socs/`. This page "
      "is\n"
      "written by `scripts/check_validation --write`; the same script without `--write` tells "
      "whether it\n"
      "still holds.\n\n"
      "```\ntroika reproduce all\ntroika reproduce heteromosaic --json\n```\n\n"
      "- **calibrates**: the fit of the descriptions (`scripts/fit_socs`) sees it; it proves "
      "nothing.\n"
      "- **described**: a description holds it, or was derived from it; it proves nothing either.\n"
      "- **validates**: neither. These figures say how far forecasts can be trusted.\n"
      "- **left out**: not simulated; the reasons stand below.\n\n"
      "`scripts/fit_socs` fitted times and powers of the 8 Gen 3. The Ryzens' numbers are those "
      "that "
      "it fits,\n"
      "too, found by trials against the same figures; a round of its own steps from there takes "
      "the "
      "mean error\n"
      "of their times from 5.3 to 4.4 % (80 schedules tried for each pass), and was not taken "
      "over. "
      "The 350's\n"
      "bandwidth was set with an eye on times at 4K tokens, which are among those that validate, "
      "and "
      "the load of\n"
      "the game with one on its effect: these say less than they seem to.\n\n"
      "`troika simulate` prints the mean error of the figures that validate,\n"
      "for each chip and stack (`validation/published.json`), as its `error_band_pct`.\n\n"
      "An error is a percentage of the published figure; for shares and savings it is in "
      "percentage\n"
      "points. Within a published range it is 0, beside it the distance to the nearer end.\n\n";
  text += fmt::format("- {}.\n", mean_text("Calibration", comparison.calibration));
  text += fmt::format("- {}.\n", mean_text("Validation", comparison.validation));
  for (const std::string& paper : papers_of(comparison)) {
    text += fmt::format("\n## {}\n\n", paper) + markdown_table(comparison, paper);
  }
  text += fmt::format("\n## Why some are off\n\n{}", markdown_reasons(comparison));
  text += fmt::format("\n## What is left out\n\n{}", markdown_left_out(comparison));
  return text;
}

std::string comparison_html(const Comparison& comparison, const std::string& plots) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Published figures, "
      "simulated</title>\n<style>body{font-family:sans-serif;margin:2em;color:#222;background:#fff}"
      "table{border-collapse:collapse}td,th{padding:.2em .6em;border-bottom:1px solid "
      "#8884;text-align:right}td:first-child,"
      "th:first-child{text-align:left}.bar{display:inline-block;height:.7em;background:#4a7}.off{"
      "background:#c43}@media(prefers-color-scheme:dark){body{color:#ddd;background:#1b1b1d}}";
  text += line_plot_style() +
          "</style></head><body>\n<h1>Published figures and what is simulated</h1>\n";
  text += fmt::format("<p>{}<br>{}</p>\n", mean_text("Calibration", comparison.calibration),
                      mean_text("Validation", comparison.validation));
  text += plots;
  for (const std::string& paper : papers_of(comparison)) {
    text += fmt::format(
        "<h2>{}</h2>\n<table><tr><th>case</th><th>published</th><th>simulated</th><th>unit</th>"
        "<th>error</th><th></th><th>use</th></tr>\n",
        html_escaped(paper));
    for (const Row& row : comparison.rows) {
      if (row.paper != paper) continue;
      const double width = row.simulated ? std::min(100.0, std::abs(row.error_pct)) : 0;
      text += fmt::format(
          "<tr title=\"{}\"><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td style=\"text-align:left\"><span class=\"bar{}\" "
          "style=\"width:{:.0f}px\"></span></td>"
          "<td>{}</td></tr>\n",
          html_escaped(row.figure.source), html_escaped(row.figure.name),
          published_text(row.figure), row.simulated ? number(*row.simulated) : "-",
          published::unit_of(row.figure.metric), error_text(row), width > 25 ? " off" : "",
          2 * width, use(row.figure));
    }
    text += "</table>\n";
  }
  return text + "</body></html>\n";
}

}  // namespace troika::cli
