// The `paced` device: another device whose tasks take as long as a described unit would need, times
// one factor. So a machine with nothing but a CPU can be watched at a chip's proportions, and a
// planner can be tried on timings that are known.
//
// The unit's own time counts, operator by operator; launches, joins and what units take from each
// other's bandwidth are those of the machine that it runs on.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/paced/pace.h"

namespace troika::device::paced {

struct PacedOptions {
  std::string name;
  Pace pace;
  Duration task_time{};  // on top for every task, not stretched
  bool compute = true;   // false: results are left as they are, only time passes
  // Compiling takes as long as the unit needs to build a graph, times the stretch.
  bool build_graphs = false;
  // Lets time pass until the clock shows it; empty: sleeps.
  std::function<void(TimePoint)> sleep_until;
};

// A task that the wrapped device cannot compute in its time takes as long as that.
Result<std::unique_ptr<Device>> open(PacedOptions options, std::unique_ptr<Device> wrapped,
                                     const Clock& clock = system_clock());

}  // namespace troika::device::paced
