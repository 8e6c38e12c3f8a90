#include "troika/sim/roofline_run.h"

#include <algorithm>

namespace troika::sim {

double RooflineRun::run(const Schedule& schedule) {
  times_.resize(schedule.tasks.size());
  busy_us_.assign(schedule.n_devices, 0);
  energy_mj_.assign(schedule.n_devices, 0);
  size_t set = 0;
  for (const Task& task : schedule.tasks) set |= size_t{1} << task.device;
  const bool several = (set & (set - 1)) != 0;
  double kilobytes = 0;
  for (size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const auto device = static_cast<size_t>(task.device);
    double work_us = task.work_us;
    if (several && !schedule.runs.empty()) {
      const double kept = schedule.runs[device].speed_among_others;
      work_us *= 1 - task.arithmetic + task.arithmetic / kept;
    }
    TaskTimes& times = times_[i];
    times.turn_us = times.start_us = busy_us_[device];
    busy_us_[device] += work_us;
    times.end_us = busy_us_[device];
    energy_mj_[device] += work_us * task.active_w * 1e-3;
    kilobytes += static_cast<double>(task.work_us) * task.demand_gbps;
  }
  double us = *std::max_element(busy_us_.begin(), busy_us_.end());
  if (!schedule.shared_gbps.empty() && set != 0) {
    us = std::max(us, kilobytes / schedule.shared_gbps[set]);
  }
  return us;
}

}  // namespace troika::sim
