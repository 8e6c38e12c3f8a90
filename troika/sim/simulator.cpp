#include "troika/sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troika::sim {
namespace {

// A well mixed number for each seed and task, whatever the order in which tasks run.
uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t x = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Of mean 0 and deviation 1, near enough to a normal distribution for noise, and never beyond 3.5:
// the sum of four uniform numbers, which one hash gives.
double bell(uint64_t bits) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(bits >> (16 * i) & 0xffff) + 0.5;
  return (sum * 0x1p-16 - 2) * std::numbers::sqrt3;
}

}  // namespace

double Simulator::factor(int32_t task) const {
  if (noise_.deviation == 0) return 1;
  return std::exp(noise_.deviation * bell(mixed(noise_.seed, static_cast<uint64_t>(task))));
}

void Simulator::prepare(const Schedule& schedule) {
  const size_t n = schedule.tasks.size();
  queues_.assign(schedule.n_devices, Queue());
  busy_us_.assign(schedule.n_devices, 0);
  energy_mj_.assign(schedule.n_devices, 0);
  turbo_left_mj_ = schedule.turbo_mj;
  turbo_grain_mj_ = 1e-9 * schedule.turbo_mj;
  load_times_.assign(schedule.loads.size(), {});
  for (size_t i = 0; i < schedule.loads.size(); ++i) {
    Queue& queue = queues_[static_cast<size_t>(schedule.loads[i].device)];
    queue.load = static_cast<int32_t>(i);
    queue.due_us = schedule.loads[i].first_us;
  }
  tasks_left_ = n;
  order_.resize(n);
  done_.assign(n, 0);
  times_.resize(n);
  for (const Task& task : schedule.tasks) ++queues_[static_cast<size_t>(task.device)].end;
  int32_t begin = 0;
  for (Queue& queue : queues_) {
    queue.next = begin;
    begin += queue.end;
    queue.end = queue.next;
  }
  for (size_t i = 0; i < n; ++i) {
    Queue& queue = queues_[static_cast<size_t>(schedule.tasks[i].device)];
    order_[static_cast<size_t>(queue.end++)] = static_cast<int32_t>(i);
  }
}

void Simulator::take_next(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  queue.before = queue.task;
  if (queue.next == queue.end) {
    queue.phase = Phase::kDone;
    return;
  }
  queue.task = order_[static_cast<size_t>(queue.next++)];
  const Task& task = schedule.tasks[static_cast<size_t>(queue.task)];
  times_[static_cast<size_t>(queue.task)].turn_us = now_us_;
  queue.phase = task.delay_us > 0 ? Phase::kDelay : Phase::kWaiting;
  queue.until_us = now_us_ + task.delay_us;
}

bool Simulator::waits_done(const Schedule& schedule, const Task& task) const {
  for (const int32_t other : schedule.waits_of(task)) {
    if (done_[static_cast<size_t>(other)] == 0) return false;
  }
  return true;
}

// When the last of those that it waits for ended; 0 without any.
double Simulator::last_wait_us(const Schedule& schedule, const Task& task) const {
  double last = 0;
  for (const int32_t other : schedule.waits_of(task)) {
    last = std::max(last, times_[static_cast<size_t>(other)].end_us);
  }
  return last;
}

double Simulator::stall_us(const Schedule& schedule, const Task& task, int32_t before, double stall,
                           double now_us) const {
  if (stall == 0 || before < 0) return 0;
  const TaskTimes& own = times_[static_cast<size_t>(before)];
  double ready_us = now_us;
  for (const int32_t other : schedule.waits_of(task)) {
    const TaskTimes& its = times_[static_cast<size_t>(other)];
    const double together = std::min(own.end_us, its.end_us) - std::max(own.start_us, its.start_us);
    const double part = stall * schedule.tasks[static_cast<size_t>(other)].arithmetic;
    if (together > 0) ready_us = std::max(ready_us, its.end_us + part * together);
  }
  return ready_us - now_us;
}

void Simulator::start_if_ready(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  const bool load_due = queue.load >= 0 && queue.due_us <= now_us_;
  if (queue.phase == Phase::kDone && load_due) begin_load(schedule, device);
  if (queue.phase != Phase::kWaiting) return;
  const Task& task = schedule.tasks[static_cast<size_t>(queue.task)];
  const bool ready = waits_done(schedule, task);
  if (!ready) {
    if (load_due) begin_load(schedule, device);
    return;
  }
  const double last_us = last_wait_us(schedule, task);
  queue.submitted_us = std::max(queue.submitted_us, last_us);
  if (load_due && queue.due_us < queue.submitted_us) {
    begin_load(schedule, device);
    return;
  }
  // until_us is when its turn, and its pause, were over.
  const double stall = schedule.runs.empty() ? 0 : schedule.runs[device].stall;
  const double start = task.start_us + (last_us > queue.until_us ? task.late_us : 0.0F) +
                       stall_us(schedule, task, queue.before, stall, now_us_);
  times_[static_cast<size_t>(queue.task)].start_us = now_us_;
  queue.until_us = now_us_ + start;
  if (start > 0) {
    queue.phase = Phase::kStarting;
  } else {
    begin_work(schedule, device);
  }
}

void Simulator::begin_load(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  const Load& load = schedule.loads[static_cast<size_t>(queue.load)];
  queue.resumed = queue.phase;
  queue.phase = Phase::kWorking;
  queue.runs_load = true;
  queue.left_us = load.work_us;
  queue.demand_gbps = load.demand_gbps;
  queue.arithmetic = load.arithmetic;
  queue.active_w = load.active_w;
}

void Simulator::finish_load(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  const auto number = static_cast<size_t>(queue.load);
  const double period_us = schedule.loads[number].period_us;
  LoadTimes& times = load_times_[number];
  ++times.done;
  times.longest_us = std::max(times.longest_us, now_us_ - queue.due_us);
  queue.due_us += period_us;
  if (queue.due_us + period_us <= now_us_) {
    queue.due_us += std::floor((now_us_ - queue.due_us) / period_us) * period_us;
  }
  queue.runs_load = false;
  queue.phase = queue.resumed;
}

void Simulator::count_loads(const Schedule& schedule) {
  for (size_t i = 0; i < schedule.loads.size(); ++i) {
    const double us = now_us_ - schedule.loads[i].first_us - schedule.loads[i].work_us;
    if (us < 0) continue;
    load_times_[i].due = static_cast<int64_t>(std::floor(us / schedule.loads[i].period_us)) + 1;
  }
}

void Simulator::begin_work(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  const Task& task = schedule.tasks[static_cast<size_t>(queue.task)];
  queue.phase = Phase::kWorking;
  queue.left_us = task.work_us * queue.factor * factor(queue.task);
  queue.demand_gbps = task.demand_gbps;
  queue.arithmetic = task.arithmetic;
  queue.active_w = task.active_w;
}

void Simulator::finish(const Schedule& schedule, size_t device) {
  Queue& queue = queues_[device];
  if (queue.runs_load) return finish_load(schedule, device);
  TaskTimes& times = times_[static_cast<size_t>(queue.task)];
  times.end_us = now_us_;
  busy_us_[device] += now_us_ - times.start_us;
  done_[static_cast<size_t>(queue.task)] = 1;
  --tasks_left_;
  take_next(schedule, device);
}

// Each device at the clock of the moment and at what it keeps beside others; then all alike are
// slowed when together they want more than the memory gives them.
void Simulator::set_paces(const Schedule& schedule) {
  size_t set = 0;
  for (size_t device = 0; device < queues_.size(); ++device) {
    if (queues_[device].phase == Phase::kWorking) set |= size_t{1} << device;
  }
  const bool several = (set & (set - 1)) != 0;
  constexpr DeviceRun kPlain;
  double demand = 0;
  power_w_ = schedule.idle_w;
  for (size_t device = 0; device < queues_.size(); ++device) {
    Queue& queue = queues_[device];
    const DeviceRun& run = schedule.runs.empty() ? kPlain : schedule.runs[device];
    if (queue.phase != Phase::kWorking) {
      queue.power_w = queue.phase == Phase::kDone ? 0 : run.waiting_w;
      power_w_ += queue.power_w;
      continue;
    }
    const double clock =
        (in_turbo() ? run.turbo_speed : 1) * (several ? run.speed_among_others : 1);
    queue.pace = clock == 1 ? 1 : 1 / (1 - queue.arithmetic + queue.arithmetic / clock);
    queue.power_w = queue.active_w * (in_turbo() ? run.turbo_power : 1);
    demand += queue.demand_gbps * queue.pace;
    power_w_ += queue.power_w;
  }
  share_memory(schedule, set, demand);
}

void Simulator::share_memory(const Schedule& schedule, size_t set, double demand_gbps) {
  if (schedule.shared_gbps.empty() || set == 0 || demand_gbps <= schedule.shared_gbps[set]) return;
  const double slowed = schedule.shared_gbps[set] / demand_gbps;
  for (Queue& queue : queues_) queue.pace *= slowed;
}

void Simulator::spend(double us) {
  for (size_t device = 0; device < queues_.size(); ++device) {
    if (!queues_[device].runs_load) energy_mj_[device] += us * queues_[device].power_w * 1e-3;
  }
  if (!in_turbo()) return;
  turbo_left_mj_ -= us * power_w_ * 1e-3;
  if (turbo_left_mj_ < turbo_grain_mj_) turbo_left_mj_ = 0;
}

double Simulator::next_event_us() {
  double next_us = HUGE_VAL;
  for (Queue& queue : queues_) {
    if (queue.phase == Phase::kWorking) {
      queue.ends_us = now_us_ + queue.left_us / queue.pace;
      next_us = std::min(next_us, queue.ends_us);
    } else if (queue.phase == Phase::kDelay || queue.phase == Phase::kStarting) {
      next_us = std::min(next_us, queue.until_us);
    } else if (queue.load >= 0 && queue.due_us > now_us_) {
      next_us = std::min(next_us, queue.due_us);
    }
  }
  if (in_turbo() && power_w_ > 0) {
    next_us = std::min(next_us, now_us_ + turbo_left_mj_ / power_w_ * 1e3);
  }
  return next_us;
}

bool Simulator::step(const Schedule& schedule) {
  for (size_t device = 0; device < queues_.size(); ++device) start_if_ready(schedule, device);
  if (tasks_left_ == 0) return false;
  set_paces(schedule);
  const double next_us = next_event_us();
  if (next_us == HUGE_VAL) return false;
  const double before_us = now_us_;
  now_us_ = next_us;
  spend(next_us - before_us);
  for (size_t device = 0; device < queues_.size(); ++device) {
    Queue& queue = queues_[device];
    if (queue.phase == Phase::kWorking) {
      // What ends now is told by what chose the time, not by a difference.
      const bool ends = queue.ends_us <= next_us;
      queue.left_us = std::max(0.0, queue.left_us - (next_us - before_us) * queue.pace);
      if (ends) finish(schedule, device);
    } else if (queue.phase == Phase::kDelay && queue.until_us <= next_us) {
      queue.phase = Phase::kWaiting;
    } else if (queue.phase == Phase::kStarting && queue.until_us <= next_us) {
      begin_work(schedule, device);
    }
  }
  return true;
}

double Simulator::run(const Schedule& schedule, const Noise& noise) {
  noise_ = noise;
  now_us_ = 0;
  prepare(schedule);
  for (size_t device = 0; device < queues_.size(); ++device) {
    // Numbers that no task has.
    const uint64_t number = UINT64_MAX - device;
    if (noise.device_deviation > 0) {
      queues_[device].factor = std::exp(noise.device_deviation * bell(mixed(noise.seed, number)));
    }
  }
  if (schedule.loads.empty() && schedule.turbo_mj == 0) return now_us_ = run_plain(schedule);
  for (size_t device = 0; device < queues_.size(); ++device) take_next(schedule, device);
  while (step(schedule)) {
  }
  count_loads(schedule);
  return now_us_;
}

}  // namespace troika::sim
