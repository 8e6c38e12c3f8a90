#include "troika/sim/roofline_run.h"

#include <gtest/gtest.h>

#include <random>

namespace troika::sim {
namespace {

Task task(int32_t device, float work_us, float gbps) {
  Task task;
  task.device = device;
  task.work_us = work_us;
  task.demand_gbps = gbps;
  return task;
}

TEST(RooflineRun, IsTheLongestDeviceOrTheMemory) {
  Schedule schedule;
  schedule.n_devices = 2;
  schedule.tasks = {task(0, 10, 40), task(1, 25, 40), task(0, 20, 10)};
  schedule.tasks[0].active_w = 2;
  RooflineRun roofline;
  EXPECT_DOUBLE_EQ(roofline.run(schedule), 30);
  EXPECT_DOUBLE_EQ(roofline.busy_us()[1], 25);
  EXPECT_DOUBLE_EQ(roofline.energy_mj()[0], 0.02);
  EXPECT_DOUBLE_EQ(roofline.times()[2].start_us, 10);
  // 1600 of kB at 40 GB/s.
  schedule.shared_gbps = {0, 40, 40, 40};
  EXPECT_DOUBLE_EQ(roofline.run(schedule), 40);
  schedule.shared_gbps = {0, 40, 40, 80};
  schedule.runs.resize(2);
  schedule.runs[0].speed_among_others = 0.5;
  schedule.tasks[2].arithmetic = 0;
  EXPECT_DOUBLE_EQ(roofline.run(schedule), 40);
}

TEST(RooflineRun, IsNeverSlowerThanTheSimulator) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Schedule schedule;
    schedule.n_devices = 3;
    for (int32_t i = 0; i < 40; ++i) {
      Task one = task(static_cast<int32_t>(random() % 3), 1 + static_cast<float>(random() % 20),
                      static_cast<float>(random() % 50));
      one.late_us = static_cast<float>(random() % 3);
      if (i > 0 && random() % 2 == 0) {
        one.first_wait = static_cast<int32_t>(schedule.waits.size());
        one.n_waits = 1;
        schedule.waits.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(i)));
      }
      schedule.tasks.push_back(one);
    }
    schedule.shared_gbps = {0, 50, 50, 60, 50, 60, 60, 70};
    ASSERT_TRUE(check(schedule).has_value());
    Simulator simulator;
    RooflineRun roofline;
    EXPECT_LE(roofline.run(schedule), simulator.run(schedule) * (1 + 1e-6));
  }
}

}  // namespace
}  // namespace troika::sim
