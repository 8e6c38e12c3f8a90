// The simulator's run of a schedule without loads and turbo, which is what searches ask for: the
// same events in the same order and with the same arithmetic as the general one, without asking at
// each of them for what cannot be.
#include <algorithm>
#include <array>
#include <cmath>

#include "troika/sim/simulator.h"

namespace troika::sim {

// What a device does by now.
struct Simulator::Lane {
  Phase phase = Phase::kIdle;
  const int32_t* next = nullptr;  // task in order_
  const int32_t* end = nullptr;
  const int32_t* wait = nullptr;  // the first that is not known to be done
  const int32_t* wait_end = nullptr;
  double last_us = 0;  // when the latest of those before it ended
  int32_t task = -1;
  int32_t before = -1;
  double until_us = 0;
  double left_us = 0;
  double ends_us = 0;
  double demand_gbps = 0;
  double arithmetic = 1;
  double active_w = 0;
  double pace = 1;
  double power_w = 0;
  double factor = 1;
};

struct Simulator::PlainRun {
  PlainRun(Simulator& simulator, const Schedule& of)
      : all(simulator), schedule(of), n_devices(of.n_devices) {
    for (size_t device = 0; device < n_devices; ++device) {
      const Queue& queue = all.queues_[device];
      lanes[device].next = all.order_.data() + queue.next;
      lanes[device].end = all.order_.data() + queue.end;
      lanes[device].factor = queue.factor;
      if (!of.runs.empty()) runs[device] = of.runs[device];
      take_next(lanes[device]);
    }
  }

  void take_next(Lane& lane) {
    lane.before = lane.task;
    if (lane.next == lane.end) {
      lane.phase = Phase::kDone;
      return;
    }
    lane.task = *lane.next++;
    const Task& task = schedule.tasks[static_cast<size_t>(lane.task)];
    all.times_[static_cast<size_t>(lane.task)].turn_us = now_us;
    lane.phase = task.delay_us > 0 ? Phase::kDelay : Phase::kWaiting;
    lane.until_us = now_us + task.delay_us;
    lane.wait = schedule.waits.data() + task.first_wait;
    lane.wait_end = lane.wait + task.n_waits;
    lane.last_us = 0;
  }

  void start_if_ready(Lane& lane, size_t device) {
    for (; lane.wait != lane.wait_end; ++lane.wait) {
      const auto other = static_cast<size_t>(*lane.wait);
      if (all.done_[other] == 0) return;
      lane.last_us = std::max(lane.last_us, all.times_[other].end_us);
    }
    const Task& task = schedule.tasks[static_cast<size_t>(lane.task)];
    const double start = task.start_us + (lane.last_us > lane.until_us ? task.late_us : 0.0F) +
                         all.stall_us(schedule, task, lane.before, runs[device].stall, now_us);
    all.times_[static_cast<size_t>(lane.task)].start_us = now_us;
    lane.until_us = now_us + start;
    if (start > 0) {
      lane.phase = Phase::kStarting;
    } else {
      begin_work(lane);
    }
  }

  void begin_work(Lane& lane) {
    const Task& task = schedule.tasks[static_cast<size_t>(lane.task)];
    lane.phase = Phase::kWorking;
    lane.left_us = task.work_us * lane.factor * all.factor(lane.task);
    lane.demand_gbps = task.demand_gbps;
    lane.arithmetic = task.arithmetic;
    lane.active_w = task.active_w;
  }

  void finish(Lane& lane, size_t device) {
    TaskTimes& times = all.times_[static_cast<size_t>(lane.task)];
    times.end_us = now_us;
    all.busy_us_[device] += now_us - times.start_us;
    all.done_[static_cast<size_t>(lane.task)] = 1;
    --all.tasks_left_;
    take_next(lane);
  }

  // Paces and powers until the next event.
  void set_paces() {
    size_t set = 0;
    for (size_t device = 0; device < n_devices; ++device) {
      if (lanes[device].phase == Phase::kWorking) set |= size_t{1} << device;
    }
    const bool several = (set & (set - 1)) != 0;
    double demand = 0;
    for (size_t device = 0; device < n_devices; ++device) {
      Lane& lane = lanes[device];
      if (lane.phase != Phase::kWorking) {
        lane.power_w = lane.phase == Phase::kDone ? 0 : runs[device].waiting_w;
        continue;
      }
      const double clock = several ? runs[device].speed_among_others : 1;
      lane.pace = clock == 1 ? 1 : 1 / (1 - lane.arithmetic + lane.arithmetic / clock);
      lane.power_w = lane.active_w;
      demand += lane.demand_gbps * lane.pace;
    }
    if (schedule.shared_gbps.empty() || set == 0 || demand <= schedule.shared_gbps[set]) return;
    const double slowed = schedule.shared_gbps[set] / demand;
    for (size_t device = 0; device < n_devices; ++device) lanes[device].pace *= slowed;
  }

  double next_event_us() {
    double next_us = HUGE_VAL;
    for (size_t device = 0; device < n_devices; ++device) {
      Lane& lane = lanes[device];
      if (lane.phase == Phase::kWorking) {
        lane.ends_us = now_us + (lane.pace == 1 ? lane.left_us : lane.left_us / lane.pace);
        next_us = std::min(next_us, lane.ends_us);
      } else if (lane.phase == Phase::kDelay || lane.phase == Phase::kStarting) {
        next_us = std::min(next_us, lane.until_us);
      }
    }
    return next_us;
  }

  void advance(double next_us) {
    const double us = next_us - now_us;
    now_us = next_us;
    for (size_t device = 0; device < n_devices; ++device) {
      Lane& lane = lanes[device];
      all.energy_mj_[device] += us * lane.power_w * 1e-3;
      if (lane.phase == Phase::kWorking) {
        const bool ends = lane.ends_us <= next_us;
        lane.left_us = std::max(0.0, lane.left_us - us * lane.pace);
        if (ends) finish(lane, device);
      } else if (lane.phase == Phase::kDelay && lane.until_us <= next_us) {
        lane.phase = Phase::kWaiting;
      } else if (lane.phase == Phase::kStarting && lane.until_us <= next_us) {
        begin_work(lane);
      }
    }
  }

  double run() {
    while (true) {
      for (size_t device = 0; device < n_devices; ++device) {
        if (lanes[device].phase == Phase::kWaiting) start_if_ready(lanes[device], device);
      }
      if (all.tasks_left_ == 0) return now_us;
      set_paces();
      const double next_us = next_event_us();
      if (next_us == HUGE_VAL) return now_us;
      advance(next_us);
    }
  }

  Simulator& all;
  const Schedule& schedule;
  const size_t n_devices;
  double now_us = 0;
  std::array<Lane, kMaxDevices> lanes{};
  std::array<DeviceRun, kMaxDevices> runs{};
};

double Simulator::run_plain(const Schedule& schedule) { return PlainRun(*this, schedule).run(); }

}  // namespace troika::sim
