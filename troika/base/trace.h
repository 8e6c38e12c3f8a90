// Trace: what happened, task by task, in one time base. The executor and the simulator write the
// same record; it is saved as Chrome trace events, which Perfetto opens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"

namespace troika {

struct TraceEvent {
  std::string name;        // "G1 layer 3"
  std::string stage;       // "G1"; empty: the first word of the name
  std::string device;      // "cpu"
  int64_t pass = 0;        // forward pass, counted from 0
  int32_t layer = -1;      // -1 outside the layers
  int32_t chunk = -1;      // micro-batch of the pass; -1 where there is none
  int32_t sequences = 0;   // sequences of the pass; 0 where that is not known
  int64_t row_begin = 0;   // first of its rows in the pass
  int64_t rows = 0;        // rows (tokens) that the task works on
  int64_t bytes = 0;       // bytes that the task reads and writes at least once
  int64_t copy_bytes = 0;  // those among them that are only moved: gathers and copies
  int64_t macs = 0;        // multiply-adds
  TimePoint queued{};      // handed to the device
  TimePoint start{};
  TimePoint end{};
  Duration wait{};          // idle for fences of others, directly before `start`
  Duration delay{};         // idle because the plan wants it, directly before `wait`
  double predicted_us = 0;  // of `end - start`; 0: none
};

// What a device is, for the reader of a trace.
struct TraceDevice {
  std::string name;         // as in TraceEvent::device
  std::string description;  // "Intel(R) Xeon(R), core 0"
};

struct Trace {
  bool simulated = false;
  double stretch = 1;       // every time is so many times that of the machine described
  std::string title;        // the model
  std::string description;  // the plan's reason, the command
  // In the order in which they are shown. Devices of events that are missing here come after them.
  std::vector<TraceDevice> devices;
  std::vector<TraceEvent> events;
};

// `trace.devices`, and those of events that are not among them.
std::vector<TraceDevice> all_devices(const Trace& trace);

// The least time of an event, which is 0 in what is written; 0 without events.
TimePoint trace_origin(const Trace& trace);

// For each event the lane of its device on which it does not overlap another: 0 unless the device
// had several in flight. Overlaps of up to `tolerance` do not count.
std::vector<int32_t> overlap_lanes(const Trace& trace, Duration tolerance = {});

// {"traceEvents": [...]}, times in microseconds from the first event. Texts that are not UTF-8 are
// repaired; a trace that trace_from_chrome_json() gave is written as it was.
std::string to_chrome_json(const Trace& trace);
// Writes it to `path`: a regular file through a temporary one beside it, anything else directly.
Status write_chrome_json(const Trace& trace, const std::string& path);

// The reverse, for what to_chrome_json() wrote and for any other complete events ("ph": "X") of
// Chrome's format; what a Trace has no place for is passed over. Any bytes are either read within
// bounded time and memory or refused with kInvalidData, naming the event and its field.
Result<Trace> trace_from_chrome_json(std::string_view text);

}  // namespace troika
