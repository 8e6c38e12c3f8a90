#include "troika/planner/critical_path.h"

#include <gtest/gtest.h>

namespace troika::planner {
namespace {

sim::Task task(int32_t device, float work_us) {
  sim::Task task;
  task.device = device;
  task.work_us = work_us;
  return task;
}

// device 0:  a 10 | b 30 |        d 5 (waits for c)
// device 1:         c 20 (waits for a) | e 1
sim::Schedule five_tasks() {
  sim::Schedule schedule;
  schedule.n_devices = 2;
  schedule.tasks = {task(0, 10), task(0, 30), task(1, 20), task(0, 5), task(1, 1)};
  schedule.waits = {0, 2};
  schedule.tasks[2].n_waits = 1;
  schedule.tasks[3].first_wait = 1;
  schedule.tasks[3].n_waits = 1;
  return schedule;
}

TEST(CriticalPath, IsTheChainThatTheLengthComesFrom) {
  const sim::Schedule schedule = five_tasks();
  sim::Simulator simulator;
  ASSERT_EQ(simulator.run(schedule), 45);
  const CriticalPath path = critical_path(schedule, simulator.times());
  EXPECT_EQ(path.tasks, (std::vector<int32_t>{0, 1, 3}));
  // c ends at 30, d starts at 40; e ends at 31 and could end with all at 45.
  EXPECT_EQ(path.slack_us, (std::vector<double>{0, 0, 10, 0, 14}));
}

TEST(CriticalPath, IntervalsAreStretchesWithTheSameDevicesAtWork) {
  const sim::Schedule schedule = five_tasks();
  sim::Simulator simulator;
  simulator.run(schedule);
  const CriticalPath path = critical_path(schedule, simulator.times());
  const auto all = intervals(schedule, simulator.times(), path, 0.1);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].devices, 1u);  // a: 0 to 10
  EXPECT_EQ(all[1].devices, 3u);  // b beside c and e: 10 to 31
  EXPECT_EQ(all[1].begin_us, 10);
  EXPECT_EQ(all[1].end_us, 31);
  EXPECT_EQ(all[1].critical_us, 21);  // of b
  EXPECT_EQ(all[1].pressure(), 1);
  EXPECT_EQ(all[2].devices, 1u);
  EXPECT_EQ(all[2].end_us, 45);
}

TEST(CriticalPath, OfNothingIsNothing) {
  sim::Schedule empty;
  empty.n_devices = 1;
  EXPECT_TRUE(critical_path(empty, {}).tasks.empty());
}

}  // namespace
}  // namespace troika::planner
