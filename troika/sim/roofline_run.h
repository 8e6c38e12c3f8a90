// The coarse sibling of the Simulator: how long a schedule takes if nothing waits and devices share
// the memory without loss. A lower bound for the same tasks, in a single walk over them.
#pragma once

#include <span>
#include <vector>

#include "troika/sim/simulator.h"

namespace troika::sim {

// Not shared between threads.
class RooflineRun {
 public:
  // The longest of each device's work and of all bytes at what the devices reach together. Pauses,
  // launches, joins and noise are left out; of turbo, too. us.
  double run(const Schedule& schedule);

  // Of the last run: each device does its tasks without a break.
  std::span<const TaskTimes> times() const { return times_; }       // by task
  std::span<const double> busy_us() const { return busy_us_; }      // by device
  std::span<const double> energy_mj() const { return energy_mj_; }  // by device, above idle

 private:
  std::vector<TaskTimes> times_;
  std::vector<double> busy_us_;
  std::vector<double> energy_mj_;
};

}  // namespace troika::sim
