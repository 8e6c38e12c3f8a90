#include "troika/planner/objective.h"

#include <gtest/gtest.h>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/planner/model_plan.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

Objective objective(const std::string& text) {
  const auto parsed = objective_from(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? *parsed : Objective{};
}

PassPlan plan(const std::string& wanted, int64_t rows = 256) {
  static const graph::testing::Outline outline("1024,4,8,4,2816,512");
  const cost::DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  PassRequest request;
  request.rows = rows;
  request.weight_bits = 4;
  request.activation_bits = 16;
  request.budget.evaluations = 300;
  request.objective = objective(wanted);
  const auto found = plan_pass(outline.graph, cost, *strategy_from("troika"), request);
  EXPECT_TRUE(found.has_value()) << found.error().message;
  return found ? *found : PassPlan{};
}

double watts(const PassPlan& plan) { return plan.forecast.mj() / plan.forecast.us * 1e3; }

TEST(Objective, IsReadAndWritten) {
  for (const char* text : {"latency", "energy", "edp", "power-cap=2.5", "deadline=30"}) {
    EXPECT_EQ(to_string(objective(text)), text);
  }
  EXPECT_EQ(objective("ttft").kind, Objective::Kind::kTime);
  EXPECT_EQ(objective("tpot").kind, Objective::Kind::kTime);
  for (const char* text : {"", "speed", "power-cap", "power-cap=", "power-cap=0", "deadline=-1",
                           "deadline=nan", "deadline=inf", "deadline=5ms", "power-cap=1e300"}) {
    const auto refused = objective_from(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Objective, ScoresAndLimits) {
  EXPECT_EQ(objective("latency").score(100, 7), 100);
  EXPECT_EQ(objective("energy").score(100, 7), 7);
  EXPECT_EQ(objective("edp").score(100, 7), 700);
  // 2000 us and 4 mJ are 2 W.
  EXPECT_TRUE(objective("power-cap=2").keeps_limit(2000, 4));
  EXPECT_FALSE(objective("power-cap=1.9").keeps_limit(2000, 4));
  EXPECT_EQ(objective("power-cap=2").score(2000, 4), 2000);
  EXPECT_GT(objective("power-cap=1.9").score(2000, 4), 2 * 2000);
  EXPECT_TRUE(objective("deadline=2").keeps_limit(2000, 4));
  EXPECT_FALSE(objective("deadline=1.9").keeps_limit(2000, 4));
  EXPECT_EQ(objective("deadline=2").score(2000, 4), 4);
  EXPECT_GT(objective("deadline=1.9").score(2000, 4), 2 * 4);
}

TEST(Objective, EachGetsWhatItIsFor) {
  const PassPlan fast = plan("latency");
  const PassPlan frugal = plan("energy");
  const PassPlan both = plan("edp");
  EXPECT_LT(fast.forecast.us, frugal.forecast.us);
  EXPECT_LT(frugal.forecast.mj(), fast.forecast.mj());
  EXPECT_LE(frugal.forecast.mj(), frugal.best_single_mj);
  EXPECT_LE(both.forecast.mj() * both.forecast.us, fast.forecast.mj() * fast.forecast.us);
  EXPECT_LE(both.forecast.mj() * both.forecast.us, frugal.forecast.mj() * frugal.forecast.us);
  EXPECT_NE(frugal.reason.find(" mJ"), std::string::npos) << frugal.reason;
  // This chip's description has no power for it.
  EXPECT_NE(frugal.reason.find("power not known, not used: cpu"), std::string::npos)
      << frugal.reason;
}

TEST(Objective, LimitsAreKeptWhereTheyCanBe) {
  const PassPlan fast = plan("latency");
  const PassPlan frugal = plan("energy");
  ASSERT_LT(watts(frugal), watts(fast));
  const double cap = (watts(frugal) + watts(fast)) / 2;
  const PassPlan capped = plan(fmt::format("power-cap={}", cap));
  EXPECT_LE(watts(capped), cap);
  EXPECT_GE(capped.forecast.us, fast.forecast.us);
  const double deadline = (frugal.forecast.us + fast.forecast.us) / 2e3;
  const PassPlan in_time = plan(fmt::format("deadline={}", deadline));
  EXPECT_LE(in_time.forecast.us, deadline * 1e3);
  EXPECT_LE(in_time.forecast.mj(), fast.forecast.mj());
  const PassPlan late = plan("deadline=0.01");
  EXPECT_NE(late.reason.find("nothing that was tried keeps deadline=0.01"), std::string::npos)
      << late.reason;
}

TEST(Objective, EnergyNeedsPowers) {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  for (soc::Unit& unit : soc.units) unit.power = std::nullopt;
  const cost::DescribedCost cost(soc);
  const graph::testing::Outline outline("256,2,8,4,704,512");
  PassRequest request;
  request.objective = objective("edp");
  const auto refused = plan_pass(outline.graph, cost, *strategy_from("troika"), request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("the power of no device is known"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace troika::planner
