#include "troika/planner/model_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/plan/steps.h"
#include "troika/planner/hill_climb.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

using cost::DescribedCost;
using graph::testing::Outline;

const Outline& llama_8b() {
  static const Outline outline("llama-3-8b");
  return outline;
}
const Outline& small() {
  static const Outline outline("256,4,8,2,704,1000");
  return outline;
}

PassRequest request(int64_t rows) {
  PassRequest request;
  request.rows = rows;
  request.weight_bits = 4;
  request.integer_activations = true;
  request.budget.evaluations = 120;
  return request;
}

PassPlan plan(const Outline& outline, const DescribedCost& cost, const std::string& strategy,
              const PassRequest& request) {
  auto plan = plan_pass(outline.graph, cost, *strategy_from(strategy), request);
  EXPECT_TRUE(plan.has_value()) << strategy << ": " << plan.error().message;
  return plan ? *plan : PassPlan{};
}

double per_second(const PassPlan& plan, int64_t rows) {
  return static_cast<double>(rows) / plan.forecast.us * 1e6;
}

TEST(ModelPlan, EveryStrategyGivesABucketThatCanBeRun) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  for (const char* strategy : {"single:gpu", "single:npu", "layer", "padding", "online", "pipe",
                               "heteroinfer", "heteroinfer-forced", "heteromosaic", "troika"}) {
    for (const int64_t rows : {1, 7, 64, 300}) {
      const PassPlan found = plan(small(), cost, strategy, request(rows));
      ASSERT_FALSE(found.bucket.placements.empty());
      EXPECT_FALSE(found.reason.empty());
      plan::Plan whole = plan::single_device_plan(small().graph, "gpu", rows, "f32");
      whole.devices = {"gpu", "npu"};
      whole.buckets = {found.bucket};
      EXPECT_TRUE(plan::check(whole, small().graph).has_value()) << strategy;
      PassRequest same = request(rows);
      same.build_graphs = std::string(strategy) == "online";
      const auto again = evaluate(small().graph, cost, found.bucket, same);
      ASSERT_TRUE(again.has_value()) << again.error().message;
      EXPECT_DOUBLE_EQ(again->us, found.forecast.us);
    }
  }
}

TEST(ModelPlan, GuardedStrategiesAreNeverSlowerThanADeviceAlone) {
  for (const char* chip : {"snapdragon-8-gen-3", "core-ultra-5-125h"}) {
    const DescribedCost cost(*soc::find(chip));
    for (const char* strategy : {"heteroinfer", "heteromosaic", "troika"}) {
      for (const int64_t rows : {1, 33, 256, 1000}) {
        const PassPlan found = plan(small(), cost, strategy, request(rows));
        EXPECT_LE(found.forecast.us, found.best_single_us) << chip << " " << strategy << rows;
      }
    }
  }
}

// HeteroInfer (SOSP '25): Llama-3-8B with 4-bit weights and 16-bit activations. The chip's numbers
// were fitted to single products; whole passes are a forecast.
TEST(ModelPlan, PassesOfAPublishedChipComeOutAsPrinted) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const auto speed = [&](const char* strategy, int64_t rows) {
    PassRequest published = request(rows);
    published.activation_bits = 16;
    return per_second(plan(llama_8b(), cost, strategy, published), rows);
  };
  EXPECT_NEAR(speed("layer", 1), 11.48, 0.05 * 11.48);
  EXPECT_NEAR(speed("heteroinfer", 1), 14.01, 0.08 * 14.01);
  EXPECT_NEAR(speed("layer", 256), 193.5, 0.05 * 193.5);
  EXPECT_NEAR(speed("heteroinfer", 256), 236.92, 0.05 * 236.92);
}

TEST(ModelPlan, AChipThatGainsNoBandwidthDecodesOnOneDevice) {
  const DescribedCost cost(*soc::find("core-ultra-5-125h"));
  const PassPlan found = plan(llama_8b(), cost, "troika", request(1));
  EXPECT_FALSE(found.co_executes);
  EXPECT_NE(found.reason.find("co-execution is refused"), std::string::npos) << found.reason;
}

TEST(ModelPlan, WithoutRoundedActivationsADeviceWithoutAnotherPathIsNotUsed) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  PassRequest exact = request(1);
  exact.integer_activations = false;
  EXPECT_FALSE(plan(llama_8b(), cost, "troika", exact).co_executes);
  const auto npu = plan_pass(small().graph, cost, *strategy_from("single:npu"), exact);
  ASSERT_FALSE(npu.has_value());
  EXPECT_NE(npu.error().message.find("without rounding activations"), std::string::npos);
  exact.rows = 64;  // there is a path for more rows
  EXPECT_TRUE(plan_pass(small().graph, cost, *strategy_from("single:npu"), exact).has_value());
}

TEST(ModelPlan, AWholePlanServesEveryLength) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  ModelRequest whole;
  whole.rows = {1, 16, 64};
  whole.max_rows = 300;
  whole.pass = request(1);
  const auto planned = plan_model(small().graph, cost, *strategy_from("troika"), whole);
  ASSERT_TRUE(planned.has_value()) << planned.error().message;
  ASSERT_EQ(planned->plan.buckets.size(), 4u);
  EXPECT_EQ(planned->plan.buckets.back().max_rows, 300);
  EXPECT_EQ(planned->plan.activations, "int8");
  for (int64_t rows = 1; rows <= 300; rows += 7) {
    PassRequest pass = request(rows);
    EXPECT_TRUE(evaluate(small().graph, cost, *planned->plan.bucket(rows), pass).has_value());
  }
  EXPECT_TRUE(plan::from_json(plan::to_json(planned->plan)).has_value());
}

TEST(ModelPlan, ThreadsDoNotChangeThePlan) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  ModelRequest whole;
  whole.rows = {1, 16, 64, 200};
  whole.max_rows = 300;
  whole.pass = request(1);
  whole.threads = 1;
  const auto one = plan_model(small().graph, cost, *strategy_from("troika"), whole);
  whole.threads = 3;
  const auto three = plan_model(small().graph, cost, *strategy_from("troika"), whole);
  ASSERT_TRUE(one.has_value());
  ASSERT_TRUE(three.has_value());
  EXPECT_EQ(plan::to_json(one->plan), plan::to_json(three->plan));
  whole.pass.logit_rows = 0;
  EXPECT_EQ(plan_model(small().graph, cost, *strategy_from("troika"), whole).error().code,
            ErrorCode::kInvalidArgument);
}

// Who has which part of what, however devices are numbered.
std::string by_names(const plan::RowsBucket& bucket) {
  plan::Plan whole;
  whole.buckets = {bucket};
  whole.buckets[0].predicted.reset();
  for (plan::Placement& placement : whole.buckets[0].placements) {
    std::sort(placement.parts.begin(), placement.parts.end(),
              [](const plan::Part& a, const plan::Part& b) { return a.device < b.device; });
  }
  return plan::to_json(whole);
}

TEST(ModelPlan, DevicesInAnyOrderGiveTheSamePlan) {
  for (const char* chip : {"snapdragon-8-gen-3", "core-ultra-5-125h"}) {
    soc::Soc soc = *soc::find(chip);
    const auto by_name = [](const soc::Unit& a, const soc::Unit& b) { return a.name < b.name; };
    std::sort(soc.units.begin(), soc.units.end(), by_name);
    for (const int64_t rows : {1, 64, 300}) {
      std::optional<std::string> first;
      do {
        PassRequest few = request(rows);
        few.budget.evaluations = 60;
        const PassPlan found = plan(small(), DescribedCost(soc), "troika", few);
        if (!first) first = by_names(found.bucket);
        EXPECT_EQ(by_names(found.bucket), *first) << chip << ", " << rows << " rows";
      } while (std::next_permutation(soc.units.begin(), soc.units.end(), by_name));
    }
  }
}

// Two units alike, of which one is twice as fast until about half of the pass is done: it gives
// some of the later chunks' work to the other.
TEST(ModelPlan, SharesChangeAsTurboEnds) {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  const soc::Unit gpu = soc.units[*soc.unit("gpu")];
  soc.units = {gpu, gpu};
  soc.units[1].name = "npu";
  static const Outline outline("1024,4,8,4,2816,512");
  PassRequest pass = request(4096);
  pass.budget.evaluations = 3000;
  PassPlan steady = plan(outline, DescribedCost(soc), "troika", pass);
  soc::Figure times;
  times.value = 1;
  soc::Figure joules = times;
  joules.value = steady.forecast.mj() * 0.5e-3;
  soc.turbo = soc::Turbo{times, joules, times};
  times.value = 2;
  soc.units[1].turbo_speed = times;
  const DescribedCost cost(soc);
  const auto space = PassSpace::create(outline.graph, cost, pass);
  ASSERT_TRUE(space.has_value());
  PassEvaluator evaluator(*space);
  steady.bucket.chunks = {1024};
  const double before_us = evaluator.score(steady.bucket);
  ClimbLimits limits;
  limits.evaluations = pass.budget.evaluations;
  const Climb climbed = climb(*space, *strategy_from("troika"), steady.bucket, evaluator, limits);
  EXPECT_LT(climbed.us, before_us);
  // Shares by the speeds in turbo: the last chunk's alone should be others, which chunks of the
  // same size do not need at a steady clock.
  plan::RowsBucket fast = space->bucket(space->home(), space->alone(space->home(), space->home()));
  fast.chunks = {1024};
  for (size_t g = 0; g < space->groups().size(); ++g) {
    if (space->is_head(space->groups()[g])) continue;
    space->set_choice(fast, g, {plan::Cut::kWeightCentric, {0, 1}, {1, 2}});
  }
  const double fast_us = evaluator.score(fast);
  const std::vector<Edit> edits = edits_of(*space, *strategy_from("troika"), fast, evaluator, {});
  double of_last_us = HUGE_VAL;
  for (const Edit& edit : edits) {
    const bool of_last = edit.name.find(" of chunk 3") != std::string::npos &&
                         edit.name.ends_with("from npu to gpu");
    if (of_last) of_last_us = std::min(of_last_us, evaluator.score(edit.bucket));
  }
  EXPECT_LT(of_last_us, 0.999 * fast_us);
}

TEST(ModelPlan, RequestsOutOfRangeAreRefused) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  for (const int64_t rows : {int64_t{0}, int64_t{-1}, kMaxPassRows + 1}) {
    const auto refused = plan_pass(small().graph, cost, *strategy_from("troika"), request(rows));
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
  const auto unknown = plan_pass(small().graph, cost, *strategy_from("single:tpu"), request(1));
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.error().message.find("cpu, gpu, npu"), std::string::npos);
}

}  // namespace
}  // namespace troika::planner
