// Faults by name, as written in a device string: `faulty:FAULT:DEVICE`, e.g. `faulty:nan@7:cpu@1`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::device::faulty {

// Tasks are counted from 1 since the device was opened, in the order in which they run.
enum class FaultKind {
  kOpenFails,     // open-fails: opening gives an error
  kOpenHangs,     // open-hangs: opening never returns
  kCrashOnOpen,   // crash-on-open: opening ends the process; for a child that probes
  kWrongValues,   // wrong-values: results are off by a quarter, finite and plausible
  kNan,           // nan@TASK: NaN among the results of that task
  kInf,           // inf@TASK: infinity among them
  kHang,          // hang@TASK: that task never ends, whatever is asked of it
  kCompileHangs,  // hang-compile@COMPILATION: that one never ends; counted as tasks are
  kLost,          // lost@TASK: from that task on every call fails, as after a driver's crash
  kOutOfMemory,   // oom or oom@BYTES: no memory for weights, or only so much
  kSlow,          // slow@FACTOR: takes so many times as long; slow@FACTOR-TASK: from that task on
};

struct Fault {
  FaultKind kind = FaultKind::kOpenFails;
  std::string text;   // as written: "nan@7"
  int64_t task = 0;   // kNan, kInf, kHang, kCompileHangs, kLost, kSlow
  int64_t bytes = 0;  // kOutOfMemory
  double factor = 1;  // kSlow
};

// kInvalidArgument with the faults that there are.
Result<Fault> parse_fault(std::string_view text);

}  // namespace troika::device::faulty
