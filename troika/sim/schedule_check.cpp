// Whether a schedule can be run.
#include <cmath>

#include "troika/sim/simulator.h"

namespace troika::sim {
namespace {

bool sound(float us) { return std::isfinite(us) && us >= 0; }

Status check_runs(const Schedule& schedule) {
  const auto within = [](double value, double least, double most) {
    return value >= least && value <= most;  // false for what is no number
  };
  if (!schedule.runs.empty() && schedule.runs.size() != schedule.n_devices) {
    return make_error(ErrorCode::kInvalidData, "schedule: facts of {} devices, not {}",
                      schedule.runs.size(), schedule.n_devices);
  }
  constexpr double kMost = 1e6;
  for (size_t device = 0; device < schedule.runs.size(); ++device) {
    const DeviceRun& run = schedule.runs[device];
    if (within(run.speed_among_others, 1e-3, 1) && within(run.turbo_speed, 1, kMost) &&
        within(run.turbo_power, 0, kMost) && within(run.waiting_w, 0, kMost) &&
        within(run.stall, 0, kMost)) {
      continue;
    }
    return make_error(ErrorCode::kInvalidData, "schedule: a speed or power of device {}", device);
  }
  if (within(schedule.idle_w, 0, kMost) && within(schedule.turbo_mj, 0, HUGE_VAL)) return {};
  return make_error(ErrorCode::kInvalidData, "schedule: {} W idle, a turbo for {} mJ",
                    schedule.idle_w, schedule.turbo_mj);
}

Status check_loads(const Schedule& schedule) {
  std::vector<bool> used(schedule.n_devices, false);
  for (size_t i = 0; i < schedule.loads.size(); ++i) {
    const Load& load = schedule.loads[i];
    const bool times = load.period_us >= 1 && load.work_us > 0 && load.first_us >= 0 &&
                       std::isfinite(load.period_us + load.work_us + load.first_us);
    const bool known = load.device >= 0 && static_cast<size_t>(load.device) < schedule.n_devices;
    const bool rest = load.demand_gbps >= 0 && load.active_w >= 0 && load.arithmetic >= 0 &&
                      load.arithmetic <= 1 && std::isfinite(load.demand_gbps + load.active_w);
    if (!times || !known || !rest || used[static_cast<size_t>(load.device)]) {
      return make_error(ErrorCode::kInvalidData,
                        "schedule: load {}: no such device, a second one on it, or a time, demand "
                        "or power that cannot be",
                        i);
    }
    used[static_cast<size_t>(load.device)] = true;
  }
  return {};
}

}  // namespace

bool has_sound_numbers(const Task& task) {
  return sound(task.delay_us) && sound(task.start_us) && sound(task.late_us) &&
         sound(task.work_us) && sound(task.demand_gbps) && sound(task.active_w) &&
         task.arithmetic >= 0 && task.arithmetic <= 1;
}

Status check(const Schedule& schedule) {
  if (schedule.n_devices == 0 || schedule.n_devices > kMaxDevices) {
    return make_error(ErrorCode::kInvalidData, "schedule: {} devices, not 1 to {}",
                      schedule.n_devices, kMaxDevices);
  }
  const size_t sets = schedule.shared_gbps.size();
  if (sets != 0 && sets != size_t{1} << schedule.n_devices) {
    return make_error(ErrorCode::kInvalidData, "schedule: {} shared bandwidths for {} devices",
                      sets, schedule.n_devices);
  }
  for (size_t set = 1; set < sets; ++set) {
    if (std::isfinite(schedule.shared_gbps[set]) && schedule.shared_gbps[set] > 0) continue;
    return make_error(ErrorCode::kInvalidData, "schedule: shared bandwidth {} is {} GB/s", set,
                      schedule.shared_gbps[set]);
  }
  RETURN_IF_ERROR(check_runs(schedule));
  RETURN_IF_ERROR(check_loads(schedule));
  for (size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const auto fail = [&](const char* what) {
      return make_error(ErrorCode::kInvalidData, "schedule: task {}: {}", i, what);
    };
    if (task.device < 0 || static_cast<size_t>(task.device) >= schedule.n_devices) {
      return fail("no such device");
    }
    if (task.first_wait < 0 || task.n_waits < 0 ||
        static_cast<size_t>(task.first_wait) + static_cast<size_t>(task.n_waits) >
            schedule.waits.size()) {
      return fail("no such waits");
    }
    for (const int32_t other : schedule.waits_of(task)) {
      if (other < 0 || static_cast<size_t>(other) >= i) {
        return fail("waits for a task that is not earlier");
      }
    }
    for (const float value : {task.delay_us, task.start_us, task.late_us, task.work_us,
                              task.demand_gbps, task.active_w}) {
      if (!sound(value)) return fail("a time, a demand or a power is negative or not finite");
    }
    if (!(task.arithmetic >= 0 && task.arithmetic <= 1)) return fail("not a part of its work");
  }
  return {};
}

}  // namespace troika::sim
