#include "troika/forecast/bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"

namespace troika::forecast {
namespace {

using graph::testing::Outline;

TEST(LeastMakespan, OfOneDeviceIsTheSum) {
  const DividedWork works[] = {{{10}}, {{20}}};
  EXPECT_NEAR(least_makespan_us(works), 30, 1e-9);
}

TEST(LeastMakespan, AnOperatorIsDividedByTheSpeedsOfItsDevices) {
  // Speeds of 1/10 and 1/30: together 4/30.
  const DividedWork works[] = {{{10, 30}}};
  EXPECT_NEAR(least_makespan_us(works), 7.5, 1e-5);
}

TEST(LeastMakespan, EachDeviceGetsWhatItIsRelativelyBestAt) {
  // The first is better at the first operator, the second at the second one: 6 and 6 exactly.
  const DividedWork even[] = {{{6, 60}}, {{60, 6}}};
  EXPECT_NEAR(least_makespan_us(even), 6, 1e-5);
  // 12 on the first; it gives x of the first operator away: 12 - 12 x = 4 + 24 x.
  const DividedWork uneven[] = {{{12, 24}}, {{100, 4}}};
  EXPECT_NEAR(least_makespan_us(uneven), 12 - 12 * 8.0 / 36, 1e-5);
}

TEST(LeastMakespan, ADeviceIsFasterWhileItWorksAlone) {
  // The second operator is the first device's, 40 beside the other one, 30 alone. While the other
  // one has its 10, a quarter of it is done; the rest takes 3/4 of 30.
  DividedWork works[] = {{{HUGE_VAL, 10}, 12}, {{40, HUGE_VAL}, 30}};
  EXPECT_NEAR(least_makespan_us(works), 10 + 22.5, 1e-5);
  // Together only where that is better: 12 and 30 one after the other are not.
  works[1].alone_us = 40;
  EXPECT_NEAR(least_makespan_us(works), 40, 1e-5);
  // Here it is.
  const DividedWork slow[] = {{{HUGE_VAL, 100}, 12}, {{400, HUGE_VAL}, 30}};
  EXPECT_NEAR(least_makespan_us(slow), 42, 1e-5);
}

TEST(LeastMakespan, WhatADeviceCannotHaveStaysOnTheOther) {
  const DividedWork works[] = {{{10, HUGE_VAL}}, {{30, 10}}};
  // The second device takes all of the second operator: 10 and 10.
  EXPECT_NEAR(least_makespan_us(works), 10, 1e-5);
  const DividedWork impossible[] = {{{10, 10}}, {{HUGE_VAL, HUGE_VAL}}};
  EXPECT_EQ(least_makespan_us(impossible), HUGE_VAL);
}

TEST(LeastMakespan, OfThreeDevices) {
  const DividedWork works[] = {{{30, 30, 30}}};
  EXPECT_NEAR(least_makespan_us(works), 10, 1e-4);
  const DividedWork apart[] = {
      {{9, HUGE_VAL, HUGE_VAL}}, {{HUGE_VAL, 7, HUGE_VAL}}, {{HUGE_VAL, HUGE_VAL, 8}}};
  EXPECT_NEAR(least_makespan_us(apart), 9, 1e-4);
}

// No division found by chance may be better, and some must come near.
TEST(LeastMakespan, NoRandomDivisionIsBetter) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int round = 0; round < 10; ++round) {
    std::vector<DividedWork> works(3);
    for (DividedWork& work : works) work.us = {1 + 20 * uniform(random), 1 + 20 * uniform(random)};
    const double least = least_makespan_us(works);
    double best = HUGE_VAL;
    for (int i = 0; i < 20000; ++i) {
      double a = 0;
      double b = 0;
      for (const DividedWork& work : works) {
        // Often all or nothing: the best divisions have one operator that is divided at most.
        const double share = std::min(1.0, std::max(0.0, 3 * uniform(random) - 1));
        a += share * work.us[0];
        b += (1 - share) * work.us[1];
      }
      best = std::min(best, std::max(a, b));
    }
    EXPECT_LE(least, best + 1e-6);
    EXPECT_GE(least, 0.95 * best);
  }
}

soc::Figure figure(double value) { return {value, soc::FigureKind::kFitted, ""}; }

soc::Unit unit(const char* name, double tflops, double gbps) {
  soc::Unit unit;
  unit.name = name;
  unit.bandwidth = figure(gbps);
  soc::Path path;
  path.types = {"w4a16", "w16a16"};
  path.rate = figure(tflops);
  unit.paths = {path};
  unit.attention_rate = figure(tflops);
  return unit;
}

soc::Soc chip(std::vector<soc::Unit> units, double reachable) {
  soc::Soc soc;
  soc.name = "test";
  soc.memory = {figure(2 * reachable), figure(reachable), {}, {}};
  soc.units = std::move(units);
  return soc;
}

// Of a pass of 256 rows with logits of one: products and causal attention.
double operations(const graph::Graph& graph) {
  double macs = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const graph::Op& op = graph.ops[i];
    const double rows = op.stage == graph::Stage::kHead ? 1 : 256;
    if (op.kind == graph::OpKind::kMatMul) {
      macs += rows * static_cast<double>(graph.tensor(op.output).width) *
              static_cast<double>(graph.tensor(op.inputs[0]).width);
    } else if (op.kind == graph::OpKind::kAttention) {
      macs += 2 * rows * 128.5 * static_cast<double>(op.heads.n_heads * op.heads.head_dim);
    }
  }
  return 2 * macs;
}

PrefillWork pass_of_256() {
  PrefillWork work;
  work.rows = 256;
  work.weight_bits = 4;
  work.activation_bits = 16;
  return work;
}

// With far more bandwidth than is needed only operations count, and devices add up.
TEST(PrefillBound, IsOperationsBySpeedWhereMemoryIsNoLimit) {
  const Outline outline("1024,4,8,4,2816,1024");
  const double work = operations(outline.graph);
  const auto one = prefill_bound(outline.graph, cost::DescribedCost(chip({unit("a", 2, 1e5)}, 1e5)),
                                 pass_of_256());
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_NEAR(one->us, work / 2e6, 0.01 * one->us);
  const auto two = prefill_bound(
      outline.graph, cost::DescribedCost(chip({unit("a", 2, 1e5), unit("b", 3, 1e5)}, 1e5)),
      pass_of_256());
  EXPECT_NEAR(two->us, work / 5e6, 0.01 * two->us);
  EXPECT_EQ(two->devices, (std::vector<size_t>{0, 1}));
}

TEST(PrefillBound, BesideEachOtherDevicesKeepPartOfTheirSpeed) {
  const Outline outline("1024,4,8,4,2816,1024");
  soc::Unit a = unit("a", 2, 1e5);
  soc::Unit b = unit("b", 3, 1e5);
  a.speed_among_others = figure(0.5);
  b.speed_among_others = figure(0.8);
  const double work = operations(outline.graph);
  const auto bound =
      prefill_bound(outline.graph, cost::DescribedCost(chip({a, b}, 1e5)), pass_of_256());
  EXPECT_NEAR(bound->us, work / 3.4e6, 0.01 * bound->us);
  // Alone the better one is faster than both, each a third as fast; so it is in the set of both.
  a.speed_among_others = b.speed_among_others = figure(1.0 / 3);
  const auto alone =
      prefill_bound(outline.graph, cost::DescribedCost(chip({a, b}, 1e5)), pass_of_256());
  const auto better =
      prefill_bound(outline.graph, cost::DescribedCost(chip({b}, 1e5)), pass_of_256());
  EXPECT_LE(alone->us, better->us);
  EXPECT_NEAR(alone->us, work / 3e6, 0.01 * alone->us);
}

TEST(PrefillBound, TurboLastsForItsEnergy) {
  const Outline outline("1024,4,8,4,2816,1024");
  soc::Unit a = unit("a", 1, 1e5);
  a.power = soc::ActivePower{figure(9), figure(9), {}};
  soc::Soc soc = chip({a}, 1e5);
  soc.idle_power = figure(1);
  const PrefillWork work = pass_of_256();
  const double us = prefill_bound(outline.graph, cost::DescribedCost(soc), work)->us;
  // Twice as fast at 19 W; the energy lasts for a tenth of the time.
  soc.turbo = soc::Turbo{figure(2), figure(19 * us * 0.1 * 1e-6), {}};
  const double with = prefill_bound(outline.graph, cost::DescribedCost(soc), work)->us;
  EXPECT_NEAR(with, 0.1 * us + 0.8 * us, 0.01 * us);
}

TEST(PrefillBound, TheMemoryLimitsAllTogether) {
  const Outline outline("1024,4,8,4,2816,1024");
  const auto bound = prefill_bound(
      outline.graph, cost::DescribedCost(chip({unit("a", 1e4, 30), unit("b", 1e4, 30)}, 40)),
      pass_of_256());
  EXPECT_GT(bound->memory_us, bound->devices_us);
  EXPECT_DOUBLE_EQ(bound->us, bound->memory_us);
}

TEST(PrefillBound, NeedsADeviceForEachOperator) {
  const Outline outline("256,2,8,4,704,512");
  soc::Unit a = unit("a", 1, 50);
  a.attention_rate.reset();
  const auto none = prefill_bound(outline.graph, cost::DescribedCost(chip({a}, 50)), pass_of_256());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  soc::Unit b = unit("b", 1, 50);
  b.paths.clear();
  EXPECT_TRUE(prefill_bound(outline.graph, cost::DescribedCost(chip({a, b}, 50)), pass_of_256())
                  .has_value());
}

}  // namespace
}  // namespace troika::forecast
