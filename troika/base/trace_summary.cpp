#include "troika/base/trace_summary.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "troika/base/critical_path.h"
#include "troika/base/median.h"

namespace troika {
namespace {

using Interval = std::pair<TimePoint, TimePoint>;

// The time that the intervals cover together.
double covered_us(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  Duration sum{};
  TimePoint until = TimePoint::min();
  for (const auto& [start, end] : intervals) {
    const TimePoint from = std::max(start, until);
    if (end <= from) continue;
    sum += end - from;
    until = end;
  }
  return to_us(sum);
}

class Adder {
 public:
  explicit Adder(const Trace& trace) : trace_(trace) {
    for (TraceDevice& device : all_devices(trace)) {
      devices_.emplace(device.name, summary_.devices.size());
      summary_.devices.emplace_back().device = std::move(device);
    }
  }

  TraceSummary add(size_t n_longest) {
    add_passes();
    add_devices();
    for (const bool decode : {false, true}) add_phase(decode);
    add_longest(n_longest);
    add_critical();
    return std::move(summary_);
  }

 private:
  size_t device_of(const TraceEvent& event) const { return devices_.find(event.device)->second; }
  bool in_decode(const TraceEvent& event) const { return decode_.find(event.pass)->second; }

  void add_passes();
  void add_devices();
  void add_phase(bool decode);
  void add_longest(size_t n);
  void add_critical();

  const Trace& trace_;
  TraceSummary summary_;
  std::map<std::string, size_t, std::less<>> devices_;
  std::map<int64_t, bool> decode_;  // by pass
};

void Adder::add_passes() {
  std::map<int64_t, PassSummary> passes;
  std::map<int64_t, int64_t> sequences;
  TimePoint start = TimePoint::max();
  TimePoint end = TimePoint::min();
  for (const TraceEvent& event : trace_.events) {
    const auto [found, is_new] = passes.emplace(event.pass, PassSummary{});
    PassSummary& pass = found->second;
    if (is_new) pass = {event.pass, 0, false, event.start, event.end};
    pass.rows = std::max(pass.rows, event.row_begin + event.rows);
    pass.start = std::min(pass.start, event.start);
    pass.end = std::max(pass.end, event.end);
    int64_t& most = sequences.emplace(event.pass, 1).first->second;
    most = std::max<int64_t>(most, event.sequences);
    start = std::min(start, event.start);
    end = std::max(end, event.end);
  }
  for (auto& [number, pass] : passes) {
    pass.decode = pass.rows <= sequences[number];
    decode_[number] = pass.decode;
    summary_.passes.push_back(pass);
  }
  if (trace_.events.empty()) return;
  summary_.start = start;
  summary_.span_us = to_us(end - start);
}

void Adder::add_devices() {
  std::vector<std::vector<Interval>> intervals(summary_.devices.size());
  std::vector<std::vector<double>> waits(summary_.devices.size());
  for (const TraceEvent& event : trace_.events) {
    const size_t index = device_of(event);
    DeviceSummary& device = summary_.devices[index];
    const double us = to_us(event.end - event.start);
    intervals[index].emplace_back(event.start, event.end);
    device.tasks += 1;
    if (event.wait > Duration::zero()) {
      device.joins += 1;
      waits[index].push_back(to_us(event.wait));
    }
    device.wait_us += to_us(event.wait);
    device.delay_us += to_us(event.delay);
    device.bytes += static_cast<double>(event.bytes);
    device.copy_bytes += static_cast<double>(event.copy_bytes);
    device.macs += static_cast<double>(event.macs);
    device.stage_us[static_cast<size_t>(trace_stage(event))] += us;
    if (event.predicted_us <= 0) continue;
    device.predicted_tasks += 1;
    device.predicted_us += event.predicted_us;
    device.measured_of_predicted_us += us;
  }
  for (size_t i = 0; i < intervals.size(); ++i) {
    summary_.devices[i].busy_us = covered_us(std::move(intervals[i]));
    summary_.devices[i].median_wait_us = median(std::move(waits[i]));
  }
}

void Adder::add_phase(bool decode) {
  PhaseSummary phase;
  phase.decode = decode;
  std::vector<Interval> passes;
  for (const PassSummary& pass : summary_.passes) {
    if (pass.decode != decode) continue;
    phase.passes += 1;
    phase.rows += pass.rows;
    passes.emplace_back(pass.start, pass.end);
  }
  if (phase.passes == 0) return;
  phase.span_us = covered_us(std::move(passes));
  std::vector<std::vector<Interval>> intervals(summary_.devices.size());
  phase.wait_us.resize(summary_.devices.size());
  for (const TraceEvent& event : trace_.events) {
    if (in_decode(event) != decode) continue;
    intervals[device_of(event)].emplace_back(event.start, event.end);
    phase.wait_us[device_of(event)] += to_us(event.wait);
  }
  for (std::vector<Interval>& of_device : intervals) {
    phase.busy_us.push_back(covered_us(std::move(of_device)));
  }
  summary_.phases.push_back(std::move(phase));
}

void Adder::add_longest(size_t n) {
  const std::vector<TraceEvent>& events = trace_.events;
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  n = std::min(n, order.size());
  const auto longer = [&events](size_t a, size_t b) {
    const Duration left = events[a].end - events[a].start;
    const Duration right = events[b].end - events[b].start;
    return left != right ? left > right : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(), longer);
  order.resize(n);
  summary_.longest = std::move(order);
}

void Adder::add_critical() {
  summary_.critical = critical_path(trace_);
  for (const size_t index : summary_.critical) {
    const TraceEvent& event = trace_.events[index];
    summary_.devices[device_of(event)].critical_us += to_us(event.end - event.start);
  }
  for (const PassSummary& pass : summary_.passes)
    summary_.passes_us += to_us(pass.end - pass.start);
}

}  // namespace

std::string_view to_string(TraceStage stage) {
  switch (stage) {
    case TraceStage::kInput:
      return "input";
    case TraceStage::kG1:
      return "G1";
    case TraceStage::kAttention:
      return "attention";
    case TraceStage::kG2:
      return "G2";
    case TraceStage::kHead:
      return "head";
    case TraceStage::kJoin:
      return "join";
    case TraceStage::kOther:
      return "other";
  }
  return "other";
}

TraceStage trace_stage(const TraceEvent& event) {
  if (event.copy_bytes > 0 && event.macs == 0) return TraceStage::kJoin;
  const std::string& text = event.stage.empty() ? event.name : event.stage;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0) break;
    word += static_cast<char>(std::tolower(byte));
  }
  constexpr std::pair<std::string_view, TraceStage> kWords[] = {
      {"input", TraceStage::kInput}, {"g1", TraceStage::kG1},
      {"a", TraceStage::kAttention}, {"attention", TraceStage::kAttention},
      {"g2", TraceStage::kG2},       {"head", TraceStage::kHead},
      {"join", TraceStage::kJoin},   {"gather", TraceStage::kJoin},
      {"sum", TraceStage::kJoin},    {"copy", TraceStage::kJoin}};
  for (const auto& [name, stage] : kWords) {
    if (word == name) return stage;
  }
  return TraceStage::kOther;
}

TraceSummary summarize(const Trace& trace, size_t n_longest) { return Adder(trace).add(n_longest); }

}  // namespace troika
