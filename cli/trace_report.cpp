#include "cli/trace_report.h"

#include <algorithm>

#include "cli/text.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxNameBytes = 40;  // of a device or task in the table
constexpr size_t kMaxLineBytes = 400;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double gbps(const DeviceSummary& device) { return share(device.bytes, device.busy_us) / 1e3; }
double gflops(const DeviceSummary& device) { return share(2 * device.macs, device.busy_us) / 1e3; }

// Sums are floating point; those of a real trace are whole numbers, and printed as such.
Json count(double sum) { return sum < 9e15 ? Json(static_cast<int64_t>(sum)) : Json(sum); }

std::string_view name_of(const PhaseSummary& phase) { return phase.decode ? "decode" : "prefill"; }

std::string time_text(double us) {
  if (us >= 1e6) return fmt::format("{:.2f} s", us / 1e6);
  if (us >= 1e3) return fmt::format("{:.2f} ms", us / 1e3);
  return fmt::format("{:.1f} us", us);
}

std::string number_of(size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", 100 * share(part, whole));
}

// Rows of cells in columns as wide as they need: the first to the left, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::vector<size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      out += fmt::format("{:<{}}", row[0], widths[0]);
      for (size_t i = 1; i < row.size(); ++i) out += fmt::format("  {:>{}}", row[i], widths[i]);
      out += '\n';
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

Json device_json(const DeviceSummary& device, const TraceSummary& summary) {
  Json stages = Json::object();
  for (size_t i = 0; i < kTraceStages; ++i) {
    if (device.stage_us[i] > 0) {
      stages[std::string(to_string(static_cast<TraceStage>(i)))] = device.stage_us[i];
    }
  }
  return {{"name", device.device.name},
          {"description", device.device.description},
          {"tasks", device.tasks},
          {"busy_us", device.busy_us},
          {"busy_share", share(device.busy_us, summary.span_us)},
          {"joins", device.joins},
          {"wait_us", device.wait_us},
          {"median_wait_us", device.median_wait_us},
          {"delay_us", device.delay_us},
          {"critical_us", device.critical_us},
          {"critical_share", share(device.critical_us, summary.passes_us)},
          {"bytes", count(device.bytes)},
          {"copy_bytes", count(device.copy_bytes)},
          {"macs", count(device.macs)},
          {"gbps", gbps(device)},
          {"gflops", gflops(device)},
          {"stage_us", stages},
          {"predicted_tasks", device.predicted_tasks},
          {"predicted_us", device.predicted_us},
          {"measured_of_predicted_us", device.measured_of_predicted_us}};
}

Json phase_json(const PhaseSummary& phase, const TraceSummary& summary) {
  Json devices = Json::array();
  for (size_t i = 0; i < summary.devices.size(); ++i) {
    devices.push_back({{"name", summary.devices[i].device.name},
                       {"busy_us", phase.busy_us[i]},
                       {"busy_share", share(phase.busy_us[i], phase.span_us)},
                       {"wait_us", phase.wait_us[i]}});
  }
  return {{"name", name_of(phase)},
          {"passes", phase.passes},
          {"rows", phase.rows},
          {"span_us", phase.span_us},
          {"rows_per_s", 1e6 * share(static_cast<double>(phase.rows), phase.span_us)},
          {"devices", devices}};
}

Json task_json(const TraceEvent& event, TimePoint origin) {
  return {{"name", event.name},
          {"stage", to_string(trace_stage(event))},
          {"device", event.device},
          {"pass", event.pass},
          {"layer", event.layer},
          {"chunk", event.chunk},
          {"rows", event.rows},
          {"start_us", to_us(event.start - origin)},
          {"us", to_us(event.end - event.start)},
          {"wait_us", to_us(event.wait)},
          {"delay_us", to_us(event.delay)},
          {"predicted_us", event.predicted_us},
          {"bytes", event.bytes},
          {"macs", event.macs}};
}

std::string device_table(const TraceSummary& summary) {
  Table table({"device", "busy", "share", "tasks", "joins", "waited", "median", "delayed",
               "critical", "GB/s", "GFLOPS"});
  for (const DeviceSummary& device : summary.devices) {
    table.add({shortened(device.device.name, kMaxNameBytes), time_text(device.busy_us),
               percent(device.busy_us, summary.span_us), fmt::format("{}", device.tasks),
               fmt::format("{}", device.joins), time_text(device.wait_us),
               time_text(device.median_wait_us), time_text(device.delay_us),
               percent(device.critical_us, summary.passes_us), fmt::format("{:.1f}", gbps(device)),
               fmt::format("{:.1f}", gflops(device))});
  }
  return table.text();
}

std::string phase_table(const TraceSummary& summary) {
  std::vector<std::string> head = {"phase", "passes", "rows", "time", "per pass", "rows/s"};
  for (const DeviceSummary& device : summary.devices) {
    head.push_back("busy " + shortened(device.device.name, kMaxNameBytes));
  }
  Table table(std::move(head));
  for (const PhaseSummary& phase : summary.phases) {
    std::vector<std::string> row = {
        std::string(name_of(phase)),
        fmt::format("{}", phase.passes),
        fmt::format("{}", phase.rows),
        time_text(phase.span_us),
        time_text(share(phase.span_us, static_cast<double>(phase.passes))),
        fmt::format("{:.1f}", 1e6 * share(static_cast<double>(phase.rows), phase.span_us))};
    for (const double busy : phase.busy_us) row.push_back(percent(busy, phase.span_us));
    table.add(std::move(row));
  }
  return table.text();
}

std::string stage_table(const TraceSummary& summary) {
  std::vector<std::string> head = {"stage"};
  for (const DeviceSummary& device : summary.devices) {
    head.push_back(shortened(device.device.name, kMaxNameBytes));
  }
  Table table(std::move(head));
  bool any = false;
  for (size_t stage = 0; stage < kTraceStages; ++stage) {
    std::vector<std::string> row = {std::string(to_string(static_cast<TraceStage>(stage)))};
    double sum = 0;
    for (const DeviceSummary& device : summary.devices) {
      row.push_back(time_text(device.stage_us[stage]));
      sum += device.stage_us[stage];
    }
    if (sum <= 0) continue;
    any = true;
    table.add(std::move(row));
  }
  return any ? table.text() : "";
}

std::string prediction_table(const TraceSummary& summary) {
  Table table({"predictions", "tasks", "predicted", "took", "ratio"});
  bool any = false;
  for (const DeviceSummary& device : summary.devices) {
    if (device.predicted_tasks == 0) continue;
    any = true;
    table.add({shortened(device.device.name, kMaxNameBytes),
               fmt::format("{}", device.predicted_tasks), time_text(device.predicted_us),
               time_text(device.measured_of_predicted_us),
               fmt::format("{:.2f}", share(device.measured_of_predicted_us, device.predicted_us))});
  }
  return any ? table.text() : "";
}

std::string longest_table(const Trace& trace, const TraceSummary& summary) {
  Table table({"longest tasks", "device", "took", "at", "pass", "rows"});
  const TimePoint origin = trace_origin(trace);
  for (const size_t index : summary.longest) {
    const TraceEvent& event = trace.events[index];
    table.add({shortened(event.name, kMaxNameBytes), shortened(event.device, kMaxNameBytes),
               time_text(to_us(event.end - event.start)), time_text(to_us(event.start - origin)),
               fmt::format("{}", event.pass), fmt::format("{}", event.rows)});
  }
  return table.text();
}

}  // namespace

Json trace_json(const Trace& trace, const TraceSummary& summary) {
  Json json = {{"simulated", trace.simulated}, {"stretch", trace.stretch},
               {"title", trace.title},         {"description", trace.description},
               {"span_us", summary.span_us},   {"passes", summary.passes.size()},
               {"tasks", trace.events.size()}};
  json["devices"] = Json::array();
  for (const DeviceSummary& device : summary.devices) {
    json["devices"].push_back(device_json(device, summary));
  }
  json["phases"] = Json::array();
  for (const PhaseSummary& phase : summary.phases) {
    json["phases"].push_back(phase_json(phase, summary));
  }
  json["longest"] = Json::array();
  const TimePoint origin = trace_origin(trace);
  for (const size_t index : summary.longest) {
    json["longest"].push_back(task_json(trace.events[index], origin));
  }
  return json;
}

std::string trace_text(const Trace& trace, const TraceSummary& summary) {
  std::string text =
      fmt::format("{}: {}, {}, {}, {}\n", trace.simulated ? "SIMULATED, not measured" : "measured",
                  time_text(summary.span_us), number_of(summary.passes.size(), "pass", "passes"),
                  number_of(trace.events.size(), "task", "tasks"),
                  number_of(summary.devices.size(), "device", "devices"));
  if (trace.stretch != 1) {
    text +=
        fmt::format("stretched: every time is {} times the described machine's\n", trace.stretch);
  }
  for (const std::string* line : {&trace.title, &trace.description}) {
    if (!line->empty()) text += shortened(*line, kMaxLineBytes) + "\n";
  }
  if (trace.events.empty()) return text;
  for (const std::string& table :
       {device_table(summary), phase_table(summary), stage_table(summary),
        prediction_table(summary), longest_table(trace, summary)}) {
    if (!table.empty()) text += "\n" + table;
  }
  return text;
}

}  // namespace troika::cli
