#include "troika/sim/pass_schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/plan/lower.h"
#include "troika/plan/testing/random_plan.h"
#include "troika/soc/catalogue.h"

namespace troika::sim {
namespace {

using graph::testing::Outline;

soc::Figure figure(double value) { return {value, soc::FigureKind::kFitted, ""}; }

// Units that can have everything, of different speeds.
cost::DescribedCost units(size_t count) {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  const soc::Unit gpu = soc.units[*soc.unit("gpu")];
  soc.units.assign(count, gpu);
  for (size_t i = 0; i < count; ++i) {
    soc.units[i].name = std::string(1, static_cast<char>('a' + i));
    soc.units[i].paths[0].rate.value = 1 + static_cast<double>(i);
    soc::Unit& unit = soc.units[i];
    unit.paths[0].types = {"w4a16", "w8a16", "w16a16"};
    unit.operator_overhead = figure(1 + static_cast<double>(i));
    unit.drained_stall = figure(0.1);
    unit.speed_among_others = figure(0.9);
    unit.power = soc::ActivePower{figure(3), figure(2), figure(1)};
    unit.datapath_switch = figure(30);
    unit.weights_switch = figure(7);
    soc::Path few = unit.paths[0];
    few.to_tokens = 5;
    unit.paths[0].from_tokens = 6;
    unit.paths.push_back(few);
  }
  soc.units[0].queue_depth = figure(1);
  soc.turbo = soc::Turbo{figure(1.3), figure(0.01), {}};
  return cost::DescribedCost(soc);
}

struct Case {
  std::vector<device::DeviceInfo> infos;
  LoweredOptions options;
};

// Devices that pad, that write no strides, and that do neither.
Case devices(size_t count, std::mt19937& random) {
  Case c;
  for (size_t i = 0; i < count; ++i) {
    device::DeviceInfo info;
    info.name = std::string(1, static_cast<char>('a' + i));
    info.strided = random() % 2 == 0;
    if (random() % 3 == 0) info.standard_rows = {1, 8, 16, 64};
    if (random() % 3 == 0) info.n_tile = info.k_tile = 32;
    c.options.devices.push_back(i);
    c.options.standard_rows.push_back(info.standard_rows);
    c.infos.push_back(std::move(info));
  }
  c.options.depth = static_cast<int64_t>(random() % 100);
  c.options.logit_rows = 1 + static_cast<int64_t>(random() % 2);
  c.options.sync = static_cast<Sync>(random() % 3);
  return c;
}

void expect_same(const Schedule& a, const Schedule& b, int number) {
  ASSERT_EQ(a.tasks.size(), b.tasks.size()) << "case " << number;
  EXPECT_EQ(a.waits, b.waits) << "case " << number;
  EXPECT_EQ(a.shared_gbps, b.shared_gbps);
  EXPECT_EQ(a.idle_w, b.idle_w);
  EXPECT_EQ(a.turbo_mj, b.turbo_mj);
  ASSERT_EQ(a.runs.size(), b.runs.size());
  for (size_t i = 0; i < a.runs.size(); ++i) {
    EXPECT_EQ(a.runs[i].speed_among_others, b.runs[i].speed_among_others);
    EXPECT_EQ(a.runs[i].turbo_speed, b.runs[i].turbo_speed);
    EXPECT_EQ(a.runs[i].turbo_power, b.runs[i].turbo_power);
    EXPECT_EQ(a.runs[i].waiting_w, b.runs[i].waiting_w);
    EXPECT_EQ(a.runs[i].stall, b.runs[i].stall);
  }
  for (size_t i = 0; i < a.tasks.size(); ++i) {
    const std::string where = "case " + std::to_string(number) + " task " + std::to_string(i);
    ASSERT_EQ(a.tasks[i].device, b.tasks[i].device) << where;
    ASSERT_EQ(a.tasks[i].n_waits, b.tasks[i].n_waits) << where;
    ASSERT_EQ(a.tasks[i].delay_us, b.tasks[i].delay_us) << where;
    ASSERT_EQ(a.tasks[i].start_us, b.tasks[i].start_us) << where;
    ASSERT_EQ(a.tasks[i].late_us, b.tasks[i].late_us) << where;
    ASSERT_EQ(a.tasks[i].work_us, b.tasks[i].work_us) << where;
    ASSERT_EQ(a.tasks[i].demand_gbps, b.tasks[i].demand_gbps) << where;
    ASSERT_EQ(a.tasks[i].arithmetic, b.tasks[i].arithmetic) << where;
    ASSERT_EQ(a.tasks[i].active_w, b.tasks[i].active_w) << where;
  }
}

// Each slice of a weight once.
std::vector<double> weight_bytes(const plan::TaskList& list, size_t n_devices) {
  std::vector<std::set<graph::WeightSlice>> slices(n_devices);
  std::vector<double> bytes(n_devices, 0);
  for (const plan::Task& task : list.tasks) {
    const auto device = static_cast<size_t>(task.device);
    for (const graph::OpId id : task.program.ops) {
      const graph::Op& op = list.cut->graph.op(id);
      if (op.kind != graph::OpKind::kMatMul) continue;
      const bool is_new = slices[device].insert(graph::weight_slice(list.cut->graph, op)).second;
      if (is_new) bytes[device] += static_cast<double>(graph::weight_bytes(list.cut->graph, id));
    }
  }
  return bytes;
}

// On any bucket that check() accepts, task for task.
void compare_random(const graph::Graph& graph, size_t n_devices, int cases, uint32_t seed) {
  std::mt19937 random(seed);
  const cost::DescribedCost cost = units(n_devices);
  int compared = 0;
  int weighed = 0;
  for (int i = 0; i < cases; ++i) {
    const Case c = devices(n_devices, random);
    std::vector<std::string> names;
    for (const auto& info : c.infos) names.push_back(info.name);
    plan::Plan plan = plan::testing::random_plan(graph, names, 64, random);
    plan.devices = names;
    const plan::RowsBucket& bucket = plan.buckets.front();
    const int64_t rows = 1 + static_cast<int64_t>(random() % 64);
    const auto list = plan::lower(plan, bucket, graph, rows, c.options.logit_rows, c.infos);
    PassScheduler scheduler(graph, cost, c.infos, c.options);
    PassSchedule fast;
    const Status built = scheduler.build(bucket, rows, fast);
    ASSERT_EQ(list.has_value(), built.has_value()) << "case " << i;
    if (!list) continue;
    const auto slow = schedule_from(*list, cost, c.options);
    ASSERT_TRUE(slow.has_value());
    expect_same(*slow, fast.schedule, i);
    if (::testing::Test::HasFatalFailure()) return;
    scheduler.add_places(fast);
    ASSERT_EQ(fast.places.size(), list->tasks.size());
    for (size_t t = 0; t < list->tasks.size(); ++t) {
      ASSERT_EQ(fast.places[t].stage, list->tasks[t].stage);
      ASSERT_EQ(fast.places[t].layer, list->tasks[t].layer);
    }
    const std::vector<double> bytes = scheduler.weight_bytes();
    if (!bytes.empty()) {
      const std::vector<double> expected = weight_bytes(*list, n_devices);
      for (size_t d = 0; d < n_devices; ++d) EXPECT_NEAR(bytes[d], expected[d], 1) << "case " << i;
      ++weighed;
    }
    ++compared;
  }
  EXPECT_GT(compared, cases / 2);
  EXPECT_GT(weighed, compared / 4);
}

TEST(PassSchedule, IsThatOfTheLoweredPlanOnTwoDevices) {
  compare_random(Outline("256,3,8,4,704,512").graph, 2, 150, 1);
}
TEST(PassSchedule, IsThatOfTheLoweredPlanOnThreeDevices) {
  compare_random(Outline("256,2,8,2,512,512").graph, 3, 100, 2);
}
// Most layers are repetitions here.
TEST(PassSchedule, IsThatOfTheLoweredPlanInDeepModels) {
  compare_random(Outline("128,9,4,2,256,512").graph, 2, 60, 3);
}
TEST(PassSchedule, IsThatOfTheLoweredPlanInDeeperModelsOnThreeDevices) {
  compare_random(Outline("128,14,4,2,256,512").graph, 3, 40, 4);
}

// In the second chunk the devices swap their halves, which are as large as before.
TEST(PassSchedule, SlicesThatDifferInWhereTheyBeginAreTwo) {
  const Outline outline("256,2,8,4,512,512");
  const cost::DescribedCost cost = units(2);
  for (const plan::Cut cut : {plan::Cut::kWeightCentric, plan::Cut::kK}) {
    Case c;
    for (size_t i = 0; i < 2; ++i) {
      c.infos.emplace_back();
      c.infos.back().name = i == 0 ? "a" : "b";
      c.options.devices.push_back(i);
    }
    plan::Plan plan = plan::single_device_plan(outline.graph, "a", 64, "f32");
    plan.devices = {"a", "b"};
    plan::RowsBucket& bucket = plan.buckets.front();
    bucket.chunks = {32};
    for (const int32_t chunk : {-1, 1}) {
      plan::Placement half;
      half.stage = graph::Stage::kG2;
      half.op = "gate";
      half.first_layer = 0;
      half.last_layer = 1;
      half.chunk = chunk;
      half.cut = cut;
      half.parts = {{chunk < 0 ? "a" : "b", 1}, {chunk < 0 ? "b" : "a", 1}};
      bucket.placements.push_back(half);
    }
    ASSERT_TRUE(plan::check(plan, outline.graph));
    const auto list = plan::lower(plan, bucket, outline.graph, 64, 1, c.infos);
    ASSERT_TRUE(list.has_value());
    const auto slow = schedule_from(*list, cost, c.options);
    PassScheduler scheduler(outline.graph, cost, c.infos, c.options);
    PassSchedule fast;
    ASSERT_TRUE(scheduler.build(bucket, 64, fast));
    expect_same(*slow, fast.schedule, static_cast<int>(cut));
    const std::vector<double> expected = weight_bytes(*list, 2);
    ASSERT_EQ(scheduler.weight_bytes().size(), 2u);
    for (size_t d = 0; d < 2; ++d) EXPECT_NEAR(scheduler.weight_bytes()[d], expected[d], 1);
  }
}

// The two ways to a trace differ only in that one counts a tensor as often as a task reads it.
TEST(PassSchedule, ItsTraceIsThatOfTheLoweredPlan) {
  const Outline outline("256,3,8,4,704,512");
  std::mt19937 random(7);
  const cost::DescribedCost cost = units(2);
  int compared = 0;
  for (int i = 0; i < 30; ++i) {
    const Case c = devices(2, random);
    plan::Plan plan = plan::testing::random_plan(outline.graph, {"a", "b"}, 64, random);
    plan.devices = {"a", "b"};
    PassScheduler scheduler(outline.graph, cost, c.infos, c.options);
    PassSchedule pass;
    if (!scheduler.build(plan.buckets[0], 48, pass)) continue;
    const std::vector<TaskFacts> facts = scheduler.task_facts(48);
    if (facts.empty()) continue;
    scheduler.add_places(pass);
    const auto list =
        plan::lower(plan, plan.buckets[0], outline.graph, 48, c.options.logit_rows, c.infos);
    Simulator simulator;
    simulator.run(pass.schedule);
    const Trace direct = trace_of(pass, facts, simulator.times(), plan.devices);
    const Trace lowered = trace_of(*list, simulator.times(), plan.devices, c.options);
    ASSERT_EQ(direct.events.size(), lowered.events.size());
    for (size_t e = 0; e < direct.events.size(); ++e) {
      const TraceEvent& one = direct.events[e];
      const TraceEvent& other = lowered.events[e];
      EXPECT_EQ(one.name, other.name);
      EXPECT_EQ(one.device, other.device);
      EXPECT_EQ(one.start, other.start);
      EXPECT_EQ(one.end, other.end);
      EXPECT_NEAR(static_cast<double>((one.wait - other.wait).count()), 0, 2);  // of rounded pauses
      EXPECT_EQ(one.rows, other.rows);
      EXPECT_EQ(one.row_begin, other.row_begin);
      EXPECT_NEAR(static_cast<double>(one.macs), static_cast<double>(other.macs),
                  1 + 1e-3 * static_cast<double>(other.macs));
      if (one.layer < 0) continue;               // embeddings are counted there only when lowered
      EXPECT_GE(one.bytes + 8192, other.bytes);  // norms' weights
      EXPECT_LE(one.bytes, 4 * other.bytes + 1);
    }
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

TEST(PassSchedule, OneSchedulerTakesOneBucketAfterAnother) {
  const Outline outline("128,5,4,2,256,512");
  std::mt19937 random(5);
  const cost::DescribedCost cost = units(2);
  const Case c = devices(2, random);
  PassScheduler scheduler(outline.graph, cost, c.infos, c.options);
  PassSchedule kept;
  for (int i = 0; i < 30; ++i) {
    const plan::Plan plan = plan::testing::random_plan(outline.graph, {"a", "b"}, 64, random);
    PassSchedule fresh;
    const bool built = scheduler.build(plan.buckets[0], 64, kept).has_value();
    PassScheduler other(outline.graph, cost, c.infos, c.options);
    ASSERT_EQ(built, other.build(plan.buckets[0], 64, fresh).has_value());
    if (built) expect_same(fresh.schedule, kept.schedule, i);
  }
}

}  // namespace
}  // namespace troika::sim
