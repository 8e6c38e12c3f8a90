#include "cli/trace_page.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "cli/page_text.h"
#include "cli/text.h"
#include "cli/trace_report.h"
#include "web/timeline.h"

namespace troika::cli {
namespace {

// All that passes have in common of a task: most events differ from an earlier one only in times.
// Name, stage, device, layer, chunk, first row, rows, bytes, copied bytes, multiply-adds.
using Kind = std::array<int64_t, 10>;

// Overlaps too small to be seen: the rounding of another program's times.
constexpr Duration kOverlapTolerance{100};

// Events column by column, ordered by start: what the page draws, in few bytes each.
class Columns {
 public:
  Columns(const Trace& trace, const TraceSummary& summary)
      : trace_(trace), critical_(trace.events.size(), false) {
    for (const size_t i : summary.critical) critical_[i] = true;
    for (const TraceDevice& device : all_devices(trace)) {
      devices_.emplace(device.name, static_cast<int64_t>(devices_.size()));
    }
  }

  Json json() {
    const std::vector<TraceEvent>& events = trace_.events;
    std::vector<size_t> order(events.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&events](size_t a, size_t b) { return events[a].start < events[b].start; });
    const std::vector<int32_t> lanes = overlap_lanes(trace_, kOverlapTolerance);
    TimePoint before = trace_origin(trace_);
    int64_t pass_before = 0;
    std::map<std::string, std::vector<int64_t>> columns;
    for (const size_t i : order) {
      const TraceEvent& event = events[i];
      columns["kind"].push_back(kind_of(event));
      columns["lane"].push_back(lanes[i]);
      columns["start"].push_back((event.start - before).count());
      columns["took"].push_back((event.end - event.start).count());
      columns["queued"].push_back((event.start - event.queued).count());
      columns["pass"].push_back(event.pass - pass_before);
      columns["wait"].push_back(event.wait.count());
      columns["delay"].push_back(event.delay.count());
      columns["critical"].push_back(critical_[i] ? 1 : 0);
      columns["predicted"].push_back(static_cast<int64_t>(event.predicted_us * 1000));
      before = event.start;
      pass_before = event.pass;
    }
    Json json = {{"count", events.size()}, {"names", names_}, {"kinds", kinds_}};
    for (auto& [name, values] : columns) {
      const auto is_zero = [](int64_t value) { return value == 0; };
      if (!std::all_of(values.begin(), values.end(), is_zero)) json[name] = std::move(values);
    }
    return json;
  }

 private:
  int64_t kind_of(const TraceEvent& event) {
    const auto [name, is_new_name] =
        name_numbers_.emplace(event.name, static_cast<int64_t>(names_.size()));
    if (is_new_name) names_.push_back(event.name);
    const Kind kind = {name->second,
                       static_cast<int64_t>(trace_stage(event)),
                       devices_.find(event.device)->second,
                       event.layer,
                       event.chunk,
                       event.row_begin,
                       event.rows,
                       event.bytes,
                       event.copy_bytes,
                       event.macs};
    const auto [found, is_new] = kind_numbers_.emplace(kind, static_cast<int64_t>(kinds_.size()));
    if (is_new) kinds_.push_back(kind);
    return found->second;
  }

  const Trace& trace_;
  std::vector<bool> critical_;
  std::map<std::string, int64_t> devices_;
  std::map<std::string, int64_t> name_numbers_;
  std::map<Kind, int64_t> kind_numbers_;
  std::vector<std::string> names_;
  std::vector<Kind> kinds_;
};

Json passes_json(const Trace& trace, const TraceSummary& summary) {
  const TimePoint origin = trace_origin(trace);
  Json passes = Json::array();
  for (const PassSummary& pass : summary.passes) {
    passes.push_back({pass.pass, pass.rows, pass.decode, (pass.start - origin).count(),
                      (pass.end - origin).count()});
  }
  return passes;
}

}  // namespace

std::string trace_page(const Trace& trace, const TraceSummary& summary) {
  Json stages = Json::array();
  for (size_t i = 0; i < kTraceStages; ++i) {
    stages.push_back(std::string(to_string(static_cast<TraceStage>(i))));
  }
  const Json data = {{"summary", trace_json(trace, summary)},
                     {"stages", stages},
                     {"passes", passes_json(trace, summary)},
                     {"origin_to_first_ns", (summary.start - trace_origin(trace)).count()},
                     {"events", Columns(trace, summary).json()}};
  const std::string title = trace.title.empty() ? "Timeline" : shortened(trace.title, 100);
  return web::timeline_page(html_escaped(valid_utf8(title)), script_safe(to_text(data)));
}

}  // namespace troika::cli
