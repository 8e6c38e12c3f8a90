// Trace: what happened, task by task, in one time base. The executor and the simulator write the
// same record; it is saved as Chrome trace events, which Perfetto opens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"

namespace troika {

struct TraceEvent {
  std::string name;    // "G1 layer 3"
  std::string device;  // "cpu"
  int64_t pass = 0;    // forward pass, counted from 0
  int32_t layer = -1;  // -1 outside the layers
  int64_t rows = 0;    // rows (tokens) of the pass
  int64_t bytes = 0;   // bytes that the task reads and writes at least once
  int64_t macs = 0;    // multiply-adds
  TimePoint queued{};  // handed to the device
  TimePoint start{};
  TimePoint end{};
};

struct Trace {
  bool simulated = false;
  std::vector<TraceEvent> events;
};

// {"traceEvents": [...]}, times in microseconds from the first event.
std::string to_chrome_json(const Trace& trace);
// Writes it to `path`: a regular file through a temporary one beside it, anything else directly.
Status write_chrome_json(const Trace& trace, const std::string& path);

}  // namespace troika
