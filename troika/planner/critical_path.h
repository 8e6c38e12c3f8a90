// Which tasks of a simulated pass decide how long it takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/sim/simulator.h"

namespace troika::planner {

struct CriticalPath {
  // How much later each task could end without a longer pass, by the edges that were seen: waits
  // and the order of each device's queue.
  std::vector<double> slack_us;
  // A chain of tasks, each the one that its successor came after, to the last one that ended.
  std::vector<int32_t> tasks;
};

// `times` of a run of the schedule.
CriticalPath critical_path(const sim::Schedule& schedule, std::span<const sim::TaskTimes> times);

// A stretch of time in which the same devices work, and how much of their work in it is critical.
struct Interval {
  double begin_us = 0;
  double end_us = 0;
  uint32_t devices = 0;      // that work, a bit each
  double critical_us = 0;    // of work of tasks with less slack than the limit
  double pressure() const {  // critical work for each unit of time
    return end_us > begin_us ? critical_us / (end_us - begin_us) : 0;
  }
};
std::vector<Interval> intervals(const sim::Schedule& schedule,
                                std::span<const sim::TaskTimes> times, const CriticalPath& path,
                                double critical_slack_us);

}  // namespace troika::planner
