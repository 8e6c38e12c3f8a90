#include "troika/sim/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace troika::sim {
namespace {

// Puts schedules together task by task.
struct Builder {
  explicit Builder(size_t devices) { schedule.n_devices = devices; }
  int32_t add(int32_t device, float work_us, std::vector<int32_t> waits = {}, float gbps = 0) {
    Task task;
    task.device = device;
    task.work_us = work_us;
    task.demand_gbps = gbps;
    task.first_wait = static_cast<int32_t>(schedule.waits.size());
    task.n_waits = static_cast<int32_t>(waits.size());
    schedule.waits.insert(schedule.waits.end(), waits.begin(), waits.end());
    schedule.tasks.push_back(task);
    return static_cast<int32_t>(schedule.tasks.size()) - 1;
  }
  Schedule schedule;
};

TEST(Simulator, AQueueRunsInOrderAndQueuesRunSideBySide) {
  Builder b(2);
  b.add(0, 10);
  b.add(1, 25);
  b.add(0, 20);
  Simulator simulator;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 30);
  EXPECT_DOUBLE_EQ(simulator.times()[2].start_us, 10);
  EXPECT_DOUBLE_EQ(simulator.times()[1].end_us, 25);
  EXPECT_DOUBLE_EQ(simulator.busy_us()[0], 30);
  EXPECT_DOUBLE_EQ(simulator.busy_us()[1], 25);
}

// Parts of a product that two devices compute at the same time do not end together.
TEST(Simulator, WhatWasComputedMeanwhileIsReadyLater) {
  Builder b(2);
  const int32_t own = b.add(0, 30);
  const int32_t others = b.add(1, 40);
  const int32_t joins = b.add(0, 5, {others});
  const int32_t after = b.add(1, 5, {joins});
  b.schedule.runs.resize(2);
  b.schedule.runs[0].stall = b.schedule.runs[1].stall = 0.2;
  Simulator simulator;
  // 40, and 0.2 of the 30 in which both worked; `after` has nothing at the same time as `joins`.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 40 + 6 + 5 + 5);
  EXPECT_DOUBLE_EQ(simulator.times()[static_cast<size_t>(own)].end_us, 30);
  EXPECT_DOUBLE_EQ(simulator.times()[static_cast<size_t>(joins)].start_us, 40);
  EXPECT_DOUBLE_EQ(simulator.times()[static_cast<size_t>(after)].start_us, 51);
  // Whoever comes later waits for less of it, and what is bound by the memory is on time.
  b.schedule.tasks[static_cast<size_t>(own)].work_us = 45;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 40 + 8 + 5 + 5);
  b.schedule.tasks[static_cast<size_t>(others)].arithmetic = 0;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 45 + 5 + 5);
}

TEST(Simulator, ATaskWaitsAndIsLateOnlyIfItHadTo) {
  Builder b(2);
  const int32_t first = b.add(0, 10);
  const int32_t waiting = b.add(1, 5, {first});
  const int32_t slow = b.add(1, 50);
  const int32_t prompt = b.add(1, 5, {first});
  for (const int32_t task : {waiting, prompt}) {
    b.schedule.tasks[static_cast<size_t>(task)].late_us = 3;
    b.schedule.tasks[static_cast<size_t>(task)].start_us = 1;
  }
  Simulator simulator;
  // 10, late by 3, launched in 1, works 5; then 50; then 1 + 5, for `first` is done long since.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 10 + 9 + 50 + 6);
  EXPECT_DOUBLE_EQ(simulator.times()[static_cast<size_t>(waiting)].start_us, 10);
  EXPECT_DOUBLE_EQ(simulator.times()[static_cast<size_t>(slow)].turn_us, 19);
  EXPECT_DOUBLE_EQ(simulator.busy_us()[1], 65);
}

TEST(Simulator, ADelayBeginsWithTheTurnAndRunsWhileOthersWork) {
  Builder b(2);
  const int32_t first = b.add(0, 10);
  b.schedule.tasks[static_cast<size_t>(b.add(1, 5, {first}))].delay_us = 4;
  b.schedule.tasks[static_cast<size_t>(b.add(1, 5, {first}))].delay_us = 4;
  Simulator simulator;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 10 + 5 + 4 + 5);
  EXPECT_DOUBLE_EQ(simulator.times()[1].start_us, 10);
}

TEST(Simulator, DevicesShareTheMemoryWhileTheyWorkAtTheSameTime) {
  Builder b(2);
  b.add(0, 10, {}, 40);
  b.add(1, 30, {}, 40);
  b.schedule.shared_gbps = {0, 50, 50, 60};
  Simulator simulator;
  // 80 of 60 GB/s: at 3/4 speed the first takes 13.33, of the second 20 are left.
  EXPECT_NEAR(simulator.run(b.schedule), 40.0 / 3 + 20, 1e-9);
  EXPECT_NEAR(simulator.times()[0].end_us, 40.0 / 3, 1e-9);
  // Alone, nothing is slowed.
  b.schedule.tasks[1].first_wait = 0;
  b.schedule.tasks[1].n_waits = 1;
  b.schedule.waits = {0};
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 40);
}

TEST(Simulator, BesideOthersADeviceKeepsPartOfItsSpeed) {
  Builder b(2);
  b.add(0, 10);
  b.add(1, 30);
  b.schedule.runs.resize(2);
  b.schedule.runs[0].speed_among_others = 0.5;
  Simulator simulator;
  // Half as fast as long as the other works, which ends at 30.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 30);
  EXPECT_DOUBLE_EQ(simulator.times()[0].end_us, 20);
  std::swap(b.schedule.runs[0], b.schedule.runs[1]);
  // Of 30 there are 5 done when the other ends, and 25 follow at full speed.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 35);
  // Memory has no clock: half of the work is as fast as before, so that 10 are 15 at this pace.
  b.schedule.tasks[1].arithmetic = 0.5;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 10 + (30 - 10 / 1.5));
}

TEST(Simulator, TurboEndsWithItsEnergyAndEnergyIsPowerTimesTime) {
  Builder b(2);
  b.add(0, 4000);
  b.add(1, 500);
  b.schedule.tasks[0].active_w = 3;
  b.schedule.tasks[1].active_w = 2;
  b.schedule.idle_w = 1;
  b.schedule.runs.resize(2);
  for (DeviceRun& run : b.schedule.runs) run.turbo_speed = 2;
  b.schedule.turbo_mj = 5.5;
  Simulator simulator;
  // Twice as fast: the second ends after 250 us at 6 W; the other 4 mJ last 1000 us at 4 W. Then
  // 2500 of 4000 are done.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 1250 + 1500);
  EXPECT_NEAR(simulator.energy_mj()[0], 2.75 * 3, 1e-9);
  EXPECT_NEAR(simulator.energy_mj()[1], 0.25 * 2, 1e-9);
  // With twice the power in turbo: 250 us at 11 W, then 2.75 mJ at 7 W.
  for (DeviceRun& run : b.schedule.runs) run.turbo_power = 2;
  const double turbo_us = 250 + 2.75 / 7 * 1e3;
  EXPECT_NEAR(simulator.run(b.schedule), turbo_us + 4000 - 2 * turbo_us, 1e-9);
}

TEST(Simulator, WaitingHasAPowerOfItsOwnUntilTheLastTask) {
  Builder b(2);
  const int32_t first = b.add(0, 1000);
  b.add(1, 500, {first});
  b.schedule.tasks[1].active_w = 3;
  b.schedule.tasks[1].start_us = 100;
  b.schedule.runs.resize(2);
  for (DeviceRun& run : b.schedule.runs) run.waiting_w = 0.5;
  Simulator simulator;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 1600);
  EXPECT_DOUBLE_EQ(simulator.energy_mj()[0], 0);
  EXPECT_DOUBLE_EQ(simulator.energy_mj()[1], 1.1 * 0.5 + 0.5 * 3);
}

// Whatever the turbo, the contention and the noise do: energy is the power of each task times the
// time for which it ran.
TEST(Simulator, EnergyIsThatOfTheTasksThatRan) {
  std::mt19937 random(11);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Builder b(3);
    for (int32_t i = 0; i < 60; ++i) {
      std::vector<int32_t> waits;
      if (i > 0 && random() % 2 == 0)
        waits.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(i)));
      b.add(static_cast<int32_t>(random() % 3), 1 + static_cast<float>(random() % 50), waits,
            static_cast<float>(random() % 60));
      b.schedule.tasks.back().active_w = static_cast<float>(random() % 5);
      b.schedule.tasks.back().arithmetic = static_cast<float>(random() % 3) / 2;
    }
    b.schedule.shared_gbps = {0, 60, 60, 70, 60, 70, 70, 80};
    b.schedule.runs.resize(3);
    for (DeviceRun& run : b.schedule.runs) run.turbo_speed = 1.5;
    for (DeviceRun& run : b.schedule.runs) run.speed_among_others = 0.8;
    b.schedule.turbo_mj = 0.5;
    ASSERT_TRUE(check(b.schedule).has_value());
    Simulator simulator;
    simulator.run(b.schedule, {seed, 0.2, 0.1});
    std::vector<double> energy(3, 0);
    for (size_t i = 0; i < b.schedule.tasks.size(); ++i) {
      const Task& task = b.schedule.tasks[i];
      const TaskTimes& times = simulator.times()[i];
      energy[static_cast<size_t>(task.device)] +=
          (times.end_us - times.start_us) * static_cast<double>(task.active_w) * 1e-3;
    }
    for (size_t d = 0; d < 3; ++d) EXPECT_NEAR(simulator.energy_mj()[d], energy[d], 1e-9);
  }
}

TEST(Simulator, ADeviceCanBeSlowInAWholeRun) {
  Builder b(2);
  for (int i = 0; i < 8; ++i) b.add(i % 2, 10);
  Simulator simulator;
  const double us = simulator.run(b.schedule, {3, 0, 0.1});
  EXPECT_NE(us, 40);
  EXPECT_EQ(us, simulator.run(b.schedule, {3, 0, 0.1}));
  const double first = simulator.times()[0].end_us;
  EXPECT_DOUBLE_EQ(simulator.times()[2].end_us, 2 * first);
  EXPECT_NE(simulator.times()[1].end_us, first);
}

Load frames(double period_us, double work_us) {
  Load load;
  load.period_us = period_us;
  load.work_us = work_us;
  return load;
}

TEST(Simulator, AnotherProgramsFramesWaitForTasksThatWereSubmittedBefore) {
  Builder b(1);
  for (int i = 0; i < 10; ++i) b.add(0, 10);
  b.schedule.loads = {frames(20, 5)};
  Simulator simulator;
  // All is submitted at once: not one frame before the end.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 100);
  EXPECT_EQ(simulator.loads()[0].done, 0);
  EXPECT_EQ(simulator.loads()[0].due, 5);
}

TEST(Simulator, FramesRunWhereADeviceWaitsAndBeforeWhatWasSubmittedLater) {
  Builder b(2);
  const int32_t first = b.add(0, 30);
  b.add(1, 10, {first});
  b.schedule.loads = {frames(20, 5)};
  b.schedule.loads[0].device = 1;
  Simulator simulator;
  // At 0 and 20 while it waits; the one of 40 is due after the task's begin.
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 40);
  EXPECT_EQ(simulator.loads()[0].done, 2);
  EXPECT_DOUBLE_EQ(simulator.loads()[0].longest_us, 5);
  EXPECT_DOUBLE_EQ(simulator.busy_us()[1], 10);
  // One that runs when the wait ends delays the task, which is not late for that.
  b.schedule.loads[0].first_us = 8;
  b.schedule.tasks[1].late_us = 3;
  EXPECT_DOUBLE_EQ(simulator.run(b.schedule), 30 + 3 + 3 + 10);
  EXPECT_EQ(simulator.loads()[0].done, 2);
  // A device without tasks left has time for all of them.
  b.schedule.loads[0].device = 0;
  b.schedule.loads[0].first_us = 0;
  b.add(1, 60);
  simulator.run(b.schedule);
  EXPECT_GE(simulator.loads()[0].done, simulator.loads()[0].due - 1);
}

TEST(Simulator, FramesShareTheMemoryAndSlowOthers) {
  Builder b(2);
  b.add(0, 100, {}, 40);
  b.schedule.loads = {frames(1000, 100)};
  b.schedule.loads[0].device = 1;
  b.schedule.loads[0].demand_gbps = 40;
  b.schedule.shared_gbps = {0, 40, 40, 60};
  Simulator simulator;
  EXPECT_NEAR(simulator.run(b.schedule), 100 * 80.0 / 60, 1e-9);
}

TEST(Simulator, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    Builder b(2);
    const int32_t first = b.add(0, 10);
    b.add(1, 10, {first});
    b.schedule.shared_gbps = {0, 50, 50, 60};
    EXPECT_TRUE(check(b.schedule).has_value());
    change(b.schedule);
    return !check(b.schedule).has_value();
  };
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].device = 2; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].device = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.waits[0] = 1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.waits[0] = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[1].n_waits = 2; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].work_us = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].late_us = NAN; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].delay_us = INFINITY; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.shared_gbps.pop_back(); }));
  EXPECT_TRUE(refused([](Schedule& s) { s.shared_gbps[3] = 0; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].active_w = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.tasks[0].arithmetic = 1.5F; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.runs.resize(1); }));
  const auto bad_run = [&](double DeviceRun::*field, double value) {
    return refused([&](Schedule& s) {
      s.runs.resize(2);
      s.runs[1].*field = value;
    });
  };
  EXPECT_TRUE(bad_run(&DeviceRun::speed_among_others, 0));
  EXPECT_TRUE(bad_run(&DeviceRun::turbo_speed, 0.5));
  EXPECT_TRUE(bad_run(&DeviceRun::turbo_power, NAN));
  EXPECT_TRUE(bad_run(&DeviceRun::waiting_w, -1));
  EXPECT_TRUE(refused([](Schedule& s) { s.turbo_mj = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.loads = {frames(0, 1)}; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.loads = {frames(10, INFINITY)}; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.loads = {frames(10, 1), frames(10, 1)}; }));
  EXPECT_TRUE(refused([](Schedule& s) {
    s.loads = {frames(10, 1)};
    s.loads[0].device = 7;
  }));
  EXPECT_TRUE(refused([](Schedule& s) { s.idle_w = NAN; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.n_devices = 0; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.n_devices = 17; }));
}

Schedule random_schedule(std::mt19937& random, size_t devices, int32_t tasks) {
  Builder b(devices);
  for (int32_t i = 0; i < tasks; ++i) {
    std::vector<int32_t> waits;
    for (unsigned w = random() % 3; i > 0 && w > 0; --w) {
      waits.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(i)));
    }
    b.add(static_cast<int32_t>(random() % devices), static_cast<float>(random() % 100), waits,
          static_cast<float>(random() % 40));
    Task& task = b.schedule.tasks.back();
    task.start_us = static_cast<float>(random() % 4);
    task.late_us = static_cast<float>(random() % 10);
    if (random() % 5 == 0) task.delay_us = static_cast<float>(random() % 20);
  }
  b.schedule.shared_gbps.assign(size_t{1} << devices, 50);
  return b.schedule;
}

TEST(Simulator, RandomSchedulesEndWithEveryWaitKeptAndNoDeviceTwiceAtWork) {
  std::mt19937 random(3);
  Simulator simulator;
  for (int i = 0; i < 300; ++i) {
    const Schedule schedule = random_schedule(random, 1 + random() % 4, 60);
    ASSERT_TRUE(check(schedule).has_value());
    const double length = simulator.run(schedule);
    std::vector<double> free(schedule.n_devices, 0);
    double last = 0;
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      const Task& task = schedule.tasks[t];
      const TaskTimes& times = simulator.times()[t];
      auto& device_free = free[static_cast<size_t>(task.device)];
      EXPECT_EQ(times.turn_us, device_free);
      EXPECT_GE(times.start_us, times.turn_us + task.delay_us);
      EXPECT_GE(times.end_us, (times.start_us + task.work_us) * (1 - 1e-12));
      for (const int32_t other : schedule.waits_of(task)) {
        EXPECT_GE(times.start_us, simulator.times()[static_cast<size_t>(other)].end_us);
      }
      device_free = times.end_us;
      last = std::max(last, times.end_us);
    }
    EXPECT_EQ(length, last);
  }
}

// What a search runs and what knows of loads and turbo give the same bits: a load that is due after
// all is over changes nothing.
TEST(Simulator, IsTheSameWithoutLoadsAndWithOneThatComesTooLate) {
  std::mt19937 random(5);
  Simulator plain, general;
  for (int i = 0; i < 300; ++i) {
    Schedule schedule = random_schedule(random, 1 + random() % 4, 1 + random() % 80);
    for (Task& task : schedule.tasks) {
      task.active_w = static_cast<float>(random() % 7);
      task.arithmetic = static_cast<float>(random() % 5) / 4;
    }
    if (i % 3 == 0) schedule.shared_gbps.clear();
    schedule.idle_w = 0.5;
    for (size_t device = 0; device < schedule.n_devices && i % 2 == 0; ++device) {
      schedule.runs.push_back({0.5 + 0.125 * static_cast<double>(random() % 5), 1, 1, 0.25,
                               0.25 * static_cast<double>(random() % 3)});
    }
    const Noise noise{static_cast<uint64_t>(i), i % 4 == 0 ? 0.1 : 0, i % 5 == 0 ? 0.1 : 0};
    const double length = plain.run(schedule, noise);
    schedule.loads = {{0, 1e9, 1, 0, 1, 0, 1e12}};
    ASSERT_TRUE(check(schedule).has_value());
    ASSERT_EQ(general.run(schedule, noise), length) << i;
    for (size_t t = 0; t < schedule.tasks.size(); ++t) {
      ASSERT_EQ(plain.times()[t].turn_us, general.times()[t].turn_us) << i;
      ASSERT_EQ(plain.times()[t].start_us, general.times()[t].start_us) << i;
      ASSERT_EQ(plain.times()[t].end_us, general.times()[t].end_us) << i;
    }
    for (size_t device = 0; device < schedule.n_devices; ++device) {
      ASSERT_EQ(plain.busy_us()[device], general.busy_us()[device]) << i;
      ASSERT_EQ(plain.energy_mj()[device], general.energy_mj()[device]) << i;
    }
  }
}

TEST(Simulator, TheSameSeedGivesTheSameTimesAndAnotherOthers) {
  std::mt19937 random(4);
  const Schedule schedule = random_schedule(random, 3, 200);
  Simulator simulator;
  const double quiet = simulator.run(schedule);
  EXPECT_EQ(simulator.run(schedule), quiet);
  const double noisy = simulator.run(schedule, {1, 0.1});
  EXPECT_EQ(Simulator().run(schedule, {1, 0.1}), noisy);
  EXPECT_NE(simulator.run(schedule, {2, 0.1}), noisy);
  EXPECT_NE(noisy, quiet);
}

TEST(Simulator, NoiseHasTheDeviationAskedFor) {
  Builder b(1);
  for (int i = 0; i < 10'000; ++i) b.add(0, 1);
  Simulator simulator;
  simulator.run(b.schedule, {9, 0.2});
  double sum = 0;
  double squares = 0;
  for (const TaskTimes& times : simulator.times()) {
    const double x = std::log(times.end_us - times.start_us);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 10'000, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 10'000), 0.2, 0.01);
}

}  // namespace
}  // namespace troika::sim
