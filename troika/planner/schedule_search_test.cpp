#include "troika/planner/schedule_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/planner/hill_climb.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

using graph::testing::Outline;

constexpr int64_t kRows = 512;

const graph::Graph& two_layers() {
  static const Outline outline("1024,2,8,4,2816,512");
  return outline.graph;
}

// Three units that can have everything, of random speeds.
cost::DescribedCost random_chip(std::mt19937& random) {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  const soc::Unit gpu = soc.units[*soc.unit("gpu")];
  soc.units = {gpu, gpu, gpu};
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() % 1001) / 1000;
  };
  for (size_t i = 0; i < soc.units.size(); ++i) {
    soc::Unit& unit = soc.units[i];
    unit.name = std::string(1, static_cast<char>('a' + i));
    unit.paths[0].rate.value = between(0.3, 3);
    unit.paths[0].unpack = std::nullopt;
    unit.paths[0].unpack_tokens = std::nullopt;
    unit.attention_rate->value = between(0.05, 0.6);
    unit.bandwidth.value = between(20, 50);
  }
  soc.memory.together.clear();
  soc.sync.fast.value = between(5, 60);
  return cost::DescribedCost(soc);
}

PassRequest request(int64_t evaluations) {
  PassRequest request;
  request.rows = kRows;
  request.budget.evaluations = evaluations;
  return request;
}

// Every assignment of five pieces of a layer (q/k/v, attention, o, gate/up, down) to three devices,
// in four chunks by every order and window, or in none: the least time.
double enumerated(const PassSpace& space) {
  PassEvaluator evaluator(space);
  std::vector<size_t> layer_groups;
  for (size_t g = 0; g < space.groups().size(); ++g) {
    if (!space.is_head(space.groups()[g])) layer_groups.push_back(g);
  }
  EXPECT_EQ(layer_groups.size(), 4u);
  double best = HUGE_VAL;
  for (int code = 0; code < 243; ++code) {
    plan::RowsBucket bucket = space.bucket(space.home(), space.alone(space.home(), space.home()));
    int rest = code / 3;
    for (const size_t group : layer_groups) {
      space.set_choice(bucket, group, {plan::Cut::kNone, {static_cast<size_t>(rest % 3)}, {1}});
      rest /= 3;
    }
    for (plan::Placement& placement : bucket.placements) {
      if (placement.stage != graph::Stage::kAttention) continue;
      placement.parts = {space.part(static_cast<size_t>(code % 3), 1)};
    }
    best = std::min(best, evaluator.score(bucket));
    bucket.chunks = {kRows / 4};
    for (const int64_t window : {0, 2, 3}) {
      for (const plan::OrderRule rule : {plan::OrderRule::kStages, plan::OrderRule::kWavefront}) {
        bucket.in_flight = window;
        bucket.order_rule = rule;
        best = std::min(best, evaluator.score(bucket));
      }
    }
  }
  return best;
}

// Cases in which the schedule found is within 1 % of the enumerated optimum.
int within_one_percent(int cases) {
  const Strategy strategy = *strategy_from("troika");
  int within = 0;
  for (int seed = 0; seed < cases; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const cost::DescribedCost cost = random_chip(random);
    const auto found = plan_pass(two_layers(), cost, strategy, request(500));
    EXPECT_TRUE(found.has_value()) << found.error().message;
    const PassSpace space = *PassSpace::create(two_layers(), cost, request(1 << 20));
    const double optimum = enumerated(space);
    if (found->forecast.us <= 1.01 * optimum) ++within;
  }
  return within;
}

// A few seconds for each ten cases: TROIKA_CASES=200 for all that are claimed.
TEST(ScheduleSearch, FindsTheOptimumOfASpaceThatCanBeEnumerated) {
  const char* text = std::getenv("TROIKA_CASES");
  const int cases = text == nullptr ? 5 : std::atoi(text);
  ASSERT_GT(cases, 0);
  const int within = within_one_percent(cases);
  std::printf("%d of %d cases within 1 %% of the optimum\n", within, cases);
  EXPECT_GE(within, 0.95 * cases);
}

// The slowest device has everything, in chunks of ill-matched sizes, one at a time, with pauses.
plan::RowsBucket bad_plan(const PassSpace& space, PassEvaluator& evaluator) {
  plan::RowsBucket bad;
  double worst = 0;
  for (size_t device = 0; device < 3; ++device) {
    const plan::RowsBucket one = space.bucket(device, space.alone(device, device));
    const double us = evaluator.score(one);
    if (us > worst) bad = one;
    worst = std::max(worst, us);
  }
  bad.chunks = {kRows - 96, 32};
  bad.in_flight = 1;
  for (plan::Placement& placement : bad.placements) {
    if (placement.stage == graph::Stage::kG2) placement.delay_us = 250;
  }
  return bad;
}

void print_climb(uint32_t seed, double start_us, const Climb& climbed, double best_us) {
  std::printf("case %u: from %.0f to %.0f us by %d edits; the best known: %.0f us\n", seed,
              start_us, climbed.us, static_cast<int>(climbed.edits), best_us);
  for (const TunedBy& step : climbed.steps) {
    std::printf("  %8.0f  %s\n", step.us, step.edit.c_str());
  }
}

// Within 2 % of the enumerated optimum, and mostly within 5 % of what a search from all starts
// finds, which also cuts products and starts with loads that are even. TROIKA_CASES=16 for more
// cases; each is printed then.
TEST(ScheduleSearch, HillClimbingLeadsOutOfABadPlan) {
  Strategy strategy = *strategy_from("troika");
  strategy.enough_gain = 0;  // edits are few, evaluations are not
  const char* text = std::getenv("TROIKA_CASES");
  const auto cases = static_cast<uint32_t>(text == nullptr ? 1 : std::atoi(text));
  ASSERT_GT(cases, 0u);
  uint32_t within = 0;
  for (uint32_t seed = 0; seed < cases; ++seed) {
    std::mt19937 random(seed);
    const cost::DescribedCost cost = random_chip(random);
    const PassSpace space = *PassSpace::create(two_layers(), cost, request(1 << 20));
    PassEvaluator evaluator(space);
    const auto found = plan_pass(two_layers(), cost, strategy, request(2000));
    ASSERT_TRUE(found.has_value());
    const double optimum_us = enumerated(space);
    const double best_us = std::min(optimum_us, found->forecast.us);
    const plan::RowsBucket bad = bad_plan(space, evaluator);
    ClimbLimits limits;
    limits.edits = 50;
    limits.evaluations = 12000;
    const Climb climbed = climb(space, strategy, bad, evaluator, limits);
    double before = evaluator.score(bad);
    EXPECT_GT(before, 2 * best_us);
    EXPECT_LE(climbed.edits, 50);
    EXPECT_LE(climbed.us, 1.02 * optimum_us) << "case " << seed;
    within += climbed.us <= 1.05 * best_us ? 1 : 0;
    EXPECT_NEAR(evaluator.score(climbed.bucket), climbed.us, 1e-6);
    if (text != nullptr) print_climb(seed, before, climbed, best_us);
    // Each step was worth it.
    for (const TunedBy& step : climbed.steps) {
      EXPECT_LT(step.us, before);
      before = step.us;
    }
  }
  EXPECT_GE(within, 0.9 * cases);
}

TEST(ScheduleSearch, StaysWithinItsBudget) {
  std::mt19937 random(7);
  const cost::DescribedCost cost = random_chip(random);
  const auto found = plan_pass(two_layers(), cost, *strategy_from("troika"), request(100));
  ASSERT_TRUE(found.has_value());
  // The search's own, and the few that are evaluated once more in full.
  EXPECT_LE(found->evaluations, 140);
}

// HeteroMosaic's rule: equal shares in all chunks, sizes in multiples of 256 that do not rise.
TEST(ScheduleSearch, HeteroMosaicKeepsItsRules) {
  const cost::DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  PassRequest long_pass = request(150);
  long_pass.rows = 1536;
  const auto found = plan_pass(two_layers(), cost, *strategy_from("heteromosaic"), long_pass);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  std::vector<const plan::RowsBucket*> buckets = {&found->bucket};
  for (const PassAlternative& other : found->alternatives) buckets.push_back(&other.bucket);
  bool chunked = false;
  for (const plan::RowsBucket* bucket : buckets) {
    chunked = chunked || bucket->chunks.size() > 0;
    for (size_t i = 0; i < bucket->chunks.size(); ++i) {
      const bool last = i + 1 == bucket->chunks.size();
      if (!last) {
        EXPECT_EQ(bucket->chunks[i] % 256, 0);
      }
      if (i > 0) {
        EXPECT_LE(bucket->chunks[i], bucket->chunks[i - 1]);
      }
    }
    for (const plan::Placement& placement : bucket->placements) {
      EXPECT_EQ(placement.chunk, -1);
      if (placement.stage != graph::Stage::kAttention) continue;
      EXPECT_EQ(placement.parts.front().device, "gpu");
    }
  }
  EXPECT_TRUE(chunked);
}

}  // namespace
}  // namespace troika::planner
