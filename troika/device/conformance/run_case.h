// Runs one case on a device and compares what comes out with the reference.
#pragma once

#include <string>

#include "troika/base/clock.h"
#include "troika/device/conformance/catalogue.h"

namespace troika::device::conformance {

struct RunOptions {
  // A task that takes longer counts as hung: the device is abandoned.
  Duration task_timeout = std::chrono::seconds(60);
};

struct Outcome {
  double nmse = 0;  // of the output that comes nearest to its bound, or is furthest beyond it
  double bound = 0;
  std::string place;    // that output: "mat_mul t3, pass 0"; "kv cache"
  std::string not_run;  // why the case means nothing to this device; empty if it ran

  bool passed() const { return nmse <= bound; }
};

// An outcome, right or wrong. kDeviceFailed if the device refuses or breaks, or writes where it
// must not; kTimeout if it hangs: it has been abandoned then, and must be kept for ever if it is
// stuck().
Result<Outcome> run_case(Device& device, const Case& c, const RunOptions& options = {});

}  // namespace troika::device::conformance
