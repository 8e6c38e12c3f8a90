#include "troika/sim/lowered.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/repository.h"
#include "troika/cost/described_cost.h"
#include "troika/plan/testing/random_plan.h"
#include "troika/soc/catalogue.h"

namespace troika::sim {
namespace {

const model::Model& tiny_model() {
  static const model::Model model =
      *model::Model::load(repository_path("tests/models/q4_0-small.gguf"));
  return model;
}
const graph::Graph& tiny_graph() {
  static const graph::Graph graph = *graph::build(tiny_model());
  return graph;
}

std::vector<device::DeviceInfo> infos_for(const plan::Plan& plan) {
  std::vector<device::DeviceInfo> infos(plan.devices.size());
  for (size_t i = 0; i < infos.size(); ++i) infos[i].name = plan.devices[i];
  return infos;
}

// Two units that can have everything, at round speeds.
cost::DescribedCost two_units() {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  soc.units[2].attention_rate = soc.units[1].attention_rate;
  for (size_t i : {size_t{1}, size_t{2}}) {
    soc::Path path = soc.units[1].paths[0];
    path.types = {"w4a16", "w8a16", "w16a16"};
    soc.units[i].paths = {path};
  }
  return cost::DescribedCost(soc);
}

LoweredOptions on_gpu_and_npu() {
  LoweredOptions options;
  options.devices = {1, 2};
  return options;
}

TEST(Lowered, OneDeviceTakesTheSumOfItsOperators) {
  const plan::Plan plan = plan::single_device_plan(tiny_graph(), "gpu", 64, "f32");
  const auto list = plan::lower(plan, plan.buckets[0], tiny_graph(), 64, 1, infos_for(plan));
  ASSERT_TRUE(list.has_value());
  const cost::DescribedCost cost = two_units();
  LoweredOptions options;
  options.devices = {1};
  const auto schedule = schedule_from(*list, cost, options);
  ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
  ASSERT_EQ(schedule->tasks.size(), list->tasks.size());
  double sum = 0;
  for (const Task& task : schedule->tasks) {
    EXPECT_GT(task.work_us, 0);
    EXPECT_EQ(task.start_us + task.late_us, 0);
    sum += task.work_us;
  }
  Simulator simulator;
  EXPECT_NEAR(simulator.run(*schedule), sum, 1e-6 * sum);
  // The first task of a layer is norm, products, RoPE and KV write: at least its products.
  double products = 0;
  for (const graph::OpId id : list->tasks[1].program.ops) {
    const graph::Op& op = list->cut->graph.op(id);
    if (op.kind != graph::OpKind::kMatMul) continue;
    cost::Product product{64, list->cut->graph.tensor(op.output).width,
                          list->cut->graph.tensor(op.inputs[0]).width};
    product.weight_bits = 4.5;
    products += cost.product(1, product)->work_us();
  }
  EXPECT_GT(products, 0);
  EXPECT_GT(schedule->tasks[1].work_us, products);
  EXPECT_LT(schedule->tasks[1].work_us, 3 * products);
}

TEST(Lowered, MoreDepthAndSlowerJoinsTakeLonger) {
  std::mt19937 random(2);
  const plan::Plan plan = plan::testing::random_plan(tiny_graph(), {"gpu", "npu"}, 64, random);
  const auto list = plan::lower(plan, plan.buckets.back(), tiny_graph(), 64, 1, infos_for(plan));
  const cost::DescribedCost cost = two_units();
  LoweredOptions options = on_gpu_and_npu();
  Simulator simulator;
  const auto length = [&] { return simulator.run(*schedule_from(*list, cost, options)); };
  const double queued = length();
  options.depth = 4096;
  EXPECT_GT(length(), queued);
  options.depth = 0;
  options.sync = Sync::kPredict;
  const double predicted = length();
  EXPECT_GT(predicted, queued);
  options.sync = Sync::kBlocking;
  EXPECT_GT(length(), predicted);
}

TEST(Lowered, RandomPlansGiveSoundSchedulesAndTraces) {
  std::mt19937 random(1);
  const cost::DescribedCost cost = two_units();
  const LoweredOptions options = on_gpu_and_npu();
  Simulator simulator;
  for (int i = 0; i < 60; ++i) {
    const plan::Plan plan = plan::testing::random_plan(tiny_graph(), {"gpu", "npu"}, 64, random);
    const auto list = plan::lower(plan, plan.buckets.back(), tiny_graph(), 33, 1, infos_for(plan));
    ASSERT_TRUE(list.has_value());
    const auto schedule = schedule_from(*list, cost, options);
    ASSERT_TRUE(schedule.has_value()) << schedule.error().message;
    const double length = simulator.run(*schedule);
    const Trace trace = trace_of(*list, simulator.times(), plan.devices, options);
    EXPECT_TRUE(trace.simulated);
    ASSERT_EQ(trace.events.size(), list->tasks.size());
    Duration last{};
    for (const TraceEvent& event : trace.events) {
      EXPECT_GE(event.wait.count(), 0);
      EXPECT_GE(event.end, event.start);
      EXPECT_GT(event.bytes, 0);
      last = std::max(last, event.end);
    }
    EXPECT_NEAR(to_us(last), length, 0.01);
    // The file that a real run writes.
    const auto again = trace_from_chrome_json(to_chrome_json(trace));
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_TRUE(again->simulated);
    EXPECT_EQ(again->events.size(), trace.events.size());
  }
}

TEST(Lowered, WhatADeviceCannotHaveIsNamed) {
  const plan::Plan plan = plan::single_device_plan(tiny_graph(), "npu", 8, "f32");
  const auto list = plan::lower(plan, plan.buckets[0], tiny_graph(), 8, 1, infos_for(plan));
  const cost::DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  LoweredOptions options;
  options.devices = {2};
  const auto attention = schedule_from(*list, cost, options);
  ASSERT_FALSE(attention.has_value());
  EXPECT_EQ(attention.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(attention.error().message.find("npu cannot have"), std::string::npos);
  options.devices = {7};
  EXPECT_EQ(schedule_from(*list, cost, options).error().code, ErrorCode::kInvalidArgument);
  options.devices = {1, 1};
  EXPECT_EQ(schedule_from(*list, cost, options).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::sim
