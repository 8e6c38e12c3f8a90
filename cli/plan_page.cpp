#include "cli/plan_page.h"

#include <algorithm>
#include <cmath>

#include "cli/page_text.h"

namespace troika::cli {
namespace {

using planner::PassPlan;

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --back: #fcfcfa; --text: #1d2327; --faint: #667079; --line: #d5d9dc;
  --box: #f1f2f0; --d0: #2f6fb0; --d1: #c2641b; --d2: #3d8b4f; --d3: #8a55a8; --d4: #a3872a;
  --d5: #4a9a9a; }
@media (prefers-color-scheme: dark) { :root { --back: #15191c; --text: #e4e7e9; --faint: #98a2aa;
  --line: #363d42; --box: #1f2428; --d0: #6ba6e0; --d1: #e8955a; --d2: #76c088; --d3: #be93d8;
  --d4: #d1b75e; --d5: #7fcaca; } }
body { background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif;
  margin: 0 auto; padding: 1rem; max-width: 62rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 1.8rem 0 .3rem; border-top: 1px solid var(--line); padding-top: .8rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
.faint, th { color: var(--faint); font-weight: normal; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: right; padding: .15rem .7rem .15rem 0; white-space: nowrap; }
th:first-child, td:first-child, .left { text-align: left; }
.cuts { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: .6rem 0; }
.cut { background: var(--box); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; }
.cut b { display: block; } .cut svg { display: block; width: 100%; height: 4.2rem; margin: .3rem 0; }
.cut small { color: var(--faint); display: block; }
.bar { display: flex; height: 1.1rem; background: var(--box); border: 1px solid var(--line);
  border-radius: .2rem; overflow: hidden; min-width: 8rem; }
.bar i { display: block; height: 100%; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin: 0 .3rem 0
  .8rem; vertical-align: -.08rem; }
rect { stroke: var(--back); stroke-width: 1.5; }
details { margin: .5rem 0; } summary { cursor: pointer; }
</style>
)";

// Without control characters, which names from a file may hold.
std::string escaped(std::string_view text) {
  std::string visible(text);
  std::replace_if(
      visible.begin(), visible.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return html_escaped(visible);
}

class Page {
 public:
  explicit Page(const PassReport& report) : report_(report) {}

  std::string text() {
    out_ = kHead;
    out_ += fmt::format("<title>Plan: {}</title></head><body>\n", escaped(report_.chip));
    out_ += fmt::format("<h1>{} on {}</h1>\n", escaped(report_.model), escaped(report_.chip));
    out_ += fmt::format("<p>{}</p>\n<p class=\"faint\">strategy {}, objective {}; {}</p>\n",
                        escaped(report_.stack), escaped(report_.strategy),
                        escaped(report_.plan.plan.objective),
                        report_.simulated ? "forecast from a description, not measured"
                                          : "forecast from measurements");
    out_ += "<p class=\"key\">";
    for (size_t i = 0; i < report_.cost.devices().size(); ++i) {
      out_ += fmt::format("<i style=\"background:{}\"></i>{}", color(i),
                          escaped(report_.cost.devices()[i].name));
    }
    out_ += "</p>\n";
    summary();
    for (const PassPlan& pass : report_.plan.passes) section(pass);
    return out_ + "</body></html>\n";
  }

 private:
  static std::string color(size_t device) { return fmt::format("var(--d{})", device % 6); }
  size_t device(const std::string& name) const {
    const auto devices = report_.cost.devices();
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const auto& facts) { return facts.name == name; });
    return static_cast<size_t>(found - devices.begin());
  }
  static std::string rows_name(const PassPlan& pass) {
    return pass.bucket.max_rows == 1 ? "decode" : fmt::format("{} rows", pass.bucket.max_rows);
  }

  void summary() {
    out_ +=
        "<div class=\"wide\"><table><tr><th>pass</th><th>ms</th><th>tok/s</th><th>mJ</th>"
        "<th>best alone, ms</th><th class=\"left\">plan</th></tr>\n";
    for (const PassPlan& pass : report_.plan.passes) {
      const double us = pass.forecast.us;
      const double mj = pass.forecast.mj();
      out_ += fmt::format(
          "<tr><td>{}</td><td>{:.3f}</td><td>{:.1f}</td><td>{}</td><td>{:.3f}</td>"
          "<td class=\"left\">{}</td></tr>\n",
          rows_name(pass), us / 1e3, static_cast<double>(pass.bucket.max_rows) / us * 1e6,
          mj > 0 ? fmt::format("{:.1f}", mj) : "", pass.best_single_us / 1e3, escaped(pass.name));
    }
    out_ += "</table></div>\n";
  }

  void section(const PassPlan& pass) {
    out_ += fmt::format("<h2>{}: {:.3f} ms</h2>\n<p>{}</p>\n", rows_name(pass),
                        pass.forecast.us / 1e3, escaped(pass.reason));
    chunks(pass.bucket);
    out_ += "<div class=\"cuts\">\n";
    for (const plan::Placement& placement : pass.bucket.placements) cut(placement);
    out_ += "</div>\n";
    busy(pass);
    alternatives(pass);
    if (pass.edits.empty()) return;
    out_ +=
        fmt::format("<details><summary>{} accepted edits</summary><table>\n", pass.edits.size());
    for (const planner::TunedBy& edit : pass.edits) {
      out_ += fmt::format("<tr><td>{}</td><td>{:.3f} ms</td></tr>\n", escaped(edit.edit),
                          edit.us / 1e3);
    }
    out_ += "</table></details>\n";
  }

  void chunks(const plan::RowsBucket& bucket) {
    if (bucket.chunks.empty()) return;
    out_ += fmt::format("<p class=\"faint\">chunks, {} in flight, order {}:</p><div class=\"bar\">",
                        bucket.in_flight == 0 ? "all" : fmt::format("{}", bucket.in_flight),
                        escaped(order_name(bucket)));
    int64_t left = bucket.max_rows;
    for (size_t c = 0; left > 0; ++c) {
      const int64_t rows = std::min(left, bucket.chunks[std::min(c, bucket.chunks.size() - 1)]);
      left -= rows;
      out_ += fmt::format(
          "<i title=\"{0} rows\" style=\"flex:{0};border-right:1px solid var(--faint)\"></i>",
          rows);
    }
    out_ += "</div>\n";
  }

  // Outputs from left to right, rows from top to bottom; inputs as layers one behind the other.
  void cut(const plan::Placement& placement) {
    std::string name(to_string(placement.stage));
    if (!placement.op.empty()) name += " " + placement.op;
    if (placement.chunk >= 0) name += fmt::format(", chunk {}", placement.chunk);
    out_ += fmt::format(
        "<div class=\"cut\"><b>{}</b><svg viewBox=\"0 0 100 48\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"{}\">",
        escaped(name), to_string(placement.cut));
    double sum = 0;
    for (const plan::Part& part : placement.parts) sum += part.share;
    double at = 0;
    for (size_t i = 0; i < placement.parts.size(); ++i) {
      const double share = sum > 0 ? placement.parts[i].share / sum : 0;
      part(placement, i, at, share);
      at += share;
    }
    out_ += fmt::format("</svg><small>{}</small>", to_string(placement.cut));
    for (const plan::Part& part : placement.parts) {
      out_ += fmt::format("<small>{} {:.1f} %</small>", escaped(part.device),
                          sum > 0 ? 100 * part.share / sum : 0);
    }
    if (placement.delay_us > 0) {
      out_ += fmt::format("<small>after {:.0f} us</small>", placement.delay_us);
    }
    out_ += "</div>\n";
  }

  void part(const plan::Placement& placement, size_t index, double at, double share) {
    double x = 100 * at;
    double y = 0;
    double width = 100 * share;
    double height = 48;
    if (placement.cut == plan::Cut::kActivationCentric) {
      x = 0;
      width = 100;
      y = 48 * at;
      height = 48 * share;
    } else if (placement.cut == plan::Cut::kK) {
      const double step = 6 * static_cast<double>(index);
      const double last = 6 * static_cast<double>(placement.parts.size() - 1);
      x = y = step;
      width = 100 - last;
      height = 48 - last;
    }
    out_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "style=\"fill:{}\"/>",
        x, y, std::max(0.0, width), std::max(0.0, height),
        color(device(placement.parts[index].device)));
  }

  void busy(const PassPlan& pass) {
    out_ += "<div class=\"wide\"><table>\n";
    for (size_t i = 0; i < pass.forecast.busy_us.size(); ++i) {
      if (pass.forecast.busy_us[i] <= 0) continue;
      const double part = std::min(1.0, pass.forecast.busy_us[i] / pass.forecast.us);
      out_ += fmt::format(
          "<tr><td>{}</td><td><div class=\"bar\"><i style=\"width:{:.1f}%;background:{}\"></i>"
          "</div></td><td>{:.0f} % at work</td><td>{:.2f} GB of weights</td><td>{}</td></tr>\n",
          escaped(report_.cost.devices()[i].name), 100 * part, color(i), 100 * part,
          static_cast<double>(pass.forecast.weight_bytes[i]) / 1e9,
          pass.forecast.energy_mj[i] > 0 ? fmt::format("{:.1f} mJ", pass.forecast.energy_mj[i])
                                         : "");
    }
    out_ += "</table></div>\n";
  }

  void alternatives(const PassPlan& pass) {
    if (pass.alternatives.empty()) return;
    double longest = pass.forecast.us;
    for (const planner::PassAlternative& other : pass.alternatives) {
      if (std::isfinite(other.predicted_us)) longest = std::max(longest, other.predicted_us);
    }
    out_ += fmt::format("<details><summary>{} alternatives</summary><div class=\"wide\"><table>\n",
                        pass.alternatives.size());
    for (const planner::PassAlternative& other : pass.alternatives) {
      const bool can_be = std::isfinite(other.predicted_us);
      out_ += fmt::format(
          "<tr><td>{}</td><td>{}</td><td><div class=\"bar\"><i style=\"width:{:.1f}%;"
          "background:var(--faint)\"></i></div></td><td class=\"left\">{}</td></tr>\n",
          escaped(other.name), can_be ? fmt::format("{:.3f} ms", other.predicted_us / 1e3) : "",
          can_be ? 100 * other.predicted_us / longest : 0, escaped(other.why_not));
    }
    out_ += "</table></div></details>\n";
  }

  const PassReport& report_;
  std::string out_;
};

}  // namespace

std::string plan_page(const PassReport& report) { return Page(report).text(); }

}  // namespace troika::cli
