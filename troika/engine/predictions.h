// What a stored plan's profile says of the plan's passes, and what passes show of that: devices
// that have become slower or faster, and the plan that follows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/cost/profiled_cost.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/planner/model_plan.h"
#include "troika/runtime/executor.h"

namespace troika::engine {

// One device's tasks for which something was predicted.
struct SeenTime {
  Duration predicted{};
  Duration took{};

  // What was seen while others wanted the cores may pass soon: a quarter of it counts.
  void add(Duration predicted_time, Duration took_time, bool disturbed);
  // A quarter of a second.
  bool is_enough() const;
};

// By device, how many times as long as predicted its tasks take; 1 where too little was seen.
// nullopt while all are within 1.3 times of each other.
std::optional<std::vector<double>> drifted(std::span<const SeenTime> seen);

// How plans for the devices of a machine are asked for, wherever they are made.
struct MachinePlanOptions {
  int64_t max_rows = 512;      // of one pass
  int64_t decode_depth = 256;  // tokens before a pass of one row
  std::string kv_type = "f32";
  std::string activations = "f32";
  int64_t evaluations = 0;  // schedules tried for each number of rows; 0: the planner's default
  uint64_t seed = 1;
  runtime::Sync sync = runtime::Sync::kQueue;
};
planner::ModelRequest request_for(const MachinePlanOptions& options,
                                  std::span<const device::DeviceInfo> infos);

// A planner's plan names the devices that it uses; one that is run names all that are open.
void name_devices(plan::Plan& plan, std::span<const cost::DeviceFacts> devices);

// A plan with other buckets, and what each is to gain: "512 rows in 1.20 ms instead of 1.60 ms".
struct Correction {
  plan::Plan plan;
  std::vector<std::string> gains;
};

// The costs of a profile for one plan on devices as they are open, in the profile's order.
struct Predictions {
  std::shared_ptr<const cost::ProfiledCost> cost;
  std::vector<double> factors;  // by device: how many times as long everything takes by now
  planner::ModelRequest request;
  std::string strategy;
  plan::Plan plan;
  // Since a slow device that the plan leaves out was last tried, answers.
  int64_t answers_without = 0;

  // By task of a pass; empty if it cannot be told.
  std::vector<double> task_us(const graph::Graph& graph, const plan::RowsBucket& bucket,
                              int64_t rows, int64_t depth) const;
  // The plan by the devices' speeds as they are by now. Buckets that would gain less than a
  // fiftieth stay. The errors of the planner.
  Result<Correction> corrected(const graph::Graph& graph) const;

 private:
  // Of a pass of the bucket's rows, us; 0 if it cannot be told.
  double pass_us(const graph::Graph& graph, const plan::RowsBucket& bucket) const;
};

}  // namespace troika::engine
