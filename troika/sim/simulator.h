// The discrete-event simulator: tasks on in-order queues, waits between them, one shared memory, on
// virtual time. Deterministic: the same schedule and seed give the same times.
//
// A planner runs thousands of schedules a second, so a schedule is a few flat arrays, and a run
// allocates nothing once its Simulator has seen one as large.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/base/result.h"

namespace troika::sim {

inline constexpr size_t kMaxDevices = 16;

// One task, as much as time needs. Times in microseconds.
struct Task {
  int32_t device = 0;
  int32_t first_wait = 0;  // Schedule::waits[first_wait, first_wait + n_waits)
  int32_t n_waits = 0;
  float delay_us = 0;     // a planned pause, from when the task's turn has come
  float start_us = 0;     // before it works: to launch it, to switch
  float late_us = 0;      // the same, if it had to wait for another device
  float work_us = 0;      // at full speed
  float demand_gbps = 0;  // of the memory while it works at full speed
  float arithmetic = 1;   // the part of its work that is bound by arithmetic: that has a clock
  float active_w = 0;     // above idle while it works
};

// A device while it runs tasks.
struct DeviceRun {
  double speed_among_others = 1;  // kept in arithmetic while another one works, too
  double turbo_speed = 1;         // times as fast in arithmetic while the chip's turbo lasts
  double turbo_power = 1;         // times the active power, meanwhile
  double waiting_w = 0;           // while it has tasks left, but does not work
  // What another device worked on while this one was busy is ready for it later, by this part of
  // their time together (of what arithmetic bounds): parts that are meant to end together do not.
  double stall = 0;
};

// Another program's work on a device that comes again and again: a game's frames. One that is due
// runs while the device waits for others, and before tasks that were submitted after it: those
// whose waits ended later. It does not break into a task, nor between tasks that were submitted
// together.
struct Load {
  int32_t device = 0;  // each has one at most
  double period_us = 0;
  double work_us = 0;  // at full speed
  double demand_gbps = 0;
  double arithmetic = 1;  // as of a task
  double active_w = 0;
  double first_us = 0;  // when the first is due
};

// Those of a load that were due early enough to be done before the end. One that is not done when
// the next but one is due is left out.
struct LoadTimes {
  int64_t due = 0;
  int64_t done = 0;
  double longest_us = 0;  // from when one was due to its end
};

struct Schedule {
  size_t n_devices = 0;
  std::vector<Task> tasks;     // those of a device run in this order
  std::vector<int32_t> waits;  // earlier tasks
  // GB/s that a set of devices reaches together, by mask; empty: as much as they ask for.
  std::vector<double> shared_gbps;
  std::vector<DeviceRun> runs;  // by device; empty: as by default
  double idle_w = 0;            // of the chip
  double turbo_mj = 0;          // that the chip draws until its turbo ends; 0: no turbo
  std::vector<Load> loads;

  // Of a task that passed check().
  std::span<const int32_t> waits_of(const Task& task) const {
    return std::span(waits).subspan(static_cast<size_t>(task.first_wait),
                                    static_cast<size_t>(task.n_waits));
  }
};

// kInvalidData naming the task: an unknown device, a wait for a task that is not earlier, a time
// that is negative or not finite.
Status check(const Schedule& schedule);
// Of it, what a cost model gives: times, demand and power.
bool has_sound_numbers(const Task& task);

struct Noise {
  uint64_t seed = 0;
  double deviation = 0;         // of the logarithm of a task's work; 0: none
  double device_deviation = 0;  // of the logarithm of a device's speed in the whole run
};

struct TaskTimes {
  double turn_us = 0;   // the device had nothing before it left
  double start_us = 0;  // of launch and work; before it lie delay and wait
  double end_us = 0;
};

// Not shared between threads.
class Simulator {
 public:
  // Runs a schedule that passed check() and returns its length, us. The simulated devices start
  // empty.
  double run(const Schedule& schedule, const Noise& noise = {});

  // Of the last run.
  std::span<const TaskTimes> times() const { return times_; }       // by task
  std::span<const double> busy_us() const { return busy_us_; }      // by device
  std::span<const double> energy_mj() const { return energy_mj_; }  // of its tasks, above idle
  std::span<const LoadTimes> loads() const { return load_times_; }  // by load

 private:
  enum class Phase : uint8_t { kIdle, kDelay, kWaiting, kStarting, kWorking, kDone };
  struct Queue {
    Phase phase = Phase::kIdle;
    int32_t next = 0;  // in order_
    int32_t end = 0;
    int32_t task = -1;
    int32_t before = -1;  // the task that it had last
    double until_us = 0;  // of kDelay and kStarting
    double left_us = 0;   // of kWorking, at full speed
    double ends_us = 0;   // then, at the paces of the last event
    double demand_gbps = 0;
    double arithmetic = 1;
    double active_w = 0;
    double pace = 1;               // of kWorking, since the last event
    double power_w = 0;            // above idle, since then
    double factor = 1;             // of its work, from the noise
    int32_t load = -1;             // of the schedule
    double due_us = 0;             // of the load
    double submitted_us = 0;       // when its task, or one before it, had its last wait
    bool runs_load = false;        // kWorking for the load
    Phase resumed = Phase::kIdle;  // after it
  };

  struct Lane;
  struct PlainRun;
  // Of a schedule without loads and turbo.
  double run_plain(const Schedule& schedule);
  void prepare(const Schedule& schedule);
  void take_next(const Schedule& schedule, size_t device);
  bool waits_done(const Schedule& schedule, const Task& task) const;
  double last_wait_us(const Schedule& schedule, const Task& task) const;
  // Until what a task waits for is ready, beyond what the times say; `before` is the one that its
  // device had last.
  double stall_us(const Schedule& schedule, const Task& task, int32_t before, double stall,
                  double now_us) const;
  void start_if_ready(const Schedule& schedule, size_t device);
  void begin_load(const Schedule& schedule, size_t device);
  void finish_load(const Schedule& schedule, size_t device);
  void count_loads(const Schedule& schedule);
  double next_event_us();
  void begin_work(const Schedule& schedule, size_t device);
  void finish(const Schedule& schedule, size_t device);
  void set_paces(const Schedule& schedule);
  void share_memory(const Schedule& schedule, size_t set, double demand_gbps);
  void spend(double us);
  // Advances to the next event; false when nothing is left.
  bool step(const Schedule& schedule);
  double factor(int32_t task) const;
  bool in_turbo() const { return turbo_left_mj_ > 0; }

  double now_us_ = 0;
  Noise noise_;
  std::vector<Queue> queues_;
  std::vector<int32_t> order_;  // tasks by device
  std::vector<uint8_t> done_;
  size_t tasks_left_ = 0;
  std::vector<TaskTimes> times_;
  std::vector<double> busy_us_;
  std::vector<double> energy_mj_;
  std::vector<LoadTimes> load_times_;
  double turbo_left_mj_ = 0;
  double turbo_grain_mj_ = 0;  // less than it counts as nothing
  double power_w_ = 0;         // of the chip, since the last event
};

}  // namespace troika::sim
