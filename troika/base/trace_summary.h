// What a trace adds up to: who was busy and who waited, in each phase, and which tasks took
// longest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troika/base/trace.h"

namespace troika {

// The part of a pass that a task belongs to. kJoin: gathers, sums and copies between devices.
enum class TraceStage { kInput, kG1, kAttention, kG2, kHead, kJoin, kOther };
inline constexpr size_t kTraceStages = 7;

// "attention"
std::string_view to_string(TraceStage stage);
// kJoin for what only copies; else from `event.stage`, or the first word of its name.
TraceStage trace_stage(const TraceEvent& event);

// Sums are floating point: those of a file may be anything.
struct DeviceSummary {
  TraceDevice device;
  int64_t tasks = 0;
  int64_t joins = 0;   // tasks that waited for another device
  double busy_us = 0;  // while at least one task ran
  double wait_us = 0;
  double median_wait_us = 0;  // of the joins
  double delay_us = 0;
  double critical_us = 0;  // of its tasks on the critical path
  double bytes = 0;
  double copy_bytes = 0;
  double macs = 0;
  std::array<double, kTraceStages> stage_us{};  // time of the tasks of each stage
  int64_t predicted_tasks = 0;
  double predicted_us = 0;              // sum over the tasks that have a prediction,
  double measured_of_predicted_us = 0;  // and what those took
};

struct PassSummary {
  int64_t pass = 0;
  int64_t rows = 0;
  bool decode = false;  // one row for each sequence
  TimePoint start{};
  TimePoint end{};
};

struct PhaseSummary {
  bool decode = false;
  int64_t passes = 0;
  int64_t rows = 0;
  double span_us = 0;           // while at least one of its passes was under way
  std::vector<double> busy_us;  // by device
  std::vector<double> wait_us;
};

struct TraceSummary {
  TimePoint start{};  // of the first task
  double span_us = 0;
  std::vector<DeviceSummary> devices;  // in the order of all_devices()
  std::vector<PassSummary> passes;     // by number
  std::vector<PhaseSummary> phases;    // prefill, then decode, where there are such passes
  std::vector<size_t> longest;         // indices of events, the longest first
  std::vector<size_t> critical;        // indices of events on the critical path (critical_path.h)
  double passes_us = 0;                // time of all passes, which the critical path spans
};

TraceSummary summarize(const Trace& trace, size_t n_longest);

}  // namespace troika
