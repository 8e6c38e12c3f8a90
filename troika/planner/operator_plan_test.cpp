#include "troika/planner/operator_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "troika/cost/described_cost.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

using cost::DescribedCost;
using cost::Product;

using Shares = std::map<std::string, double>;

soc::Figure figure(double value) { return {value, soc::FigureKind::kFitted, "test"}; }

Shares shares(const DescribedCost& cost, const Division& division) {
  Shares shares;
  for (const Slice& slice : division.slices) {
    shares[cost.devices()[slice.device].name] = slice.share;
  }
  return shares;
}

OperatorPlan plan(const DescribedCost& cost, const Product& product, const std::string& strategy) {
  auto plan = plan_operator(cost, product, *strategy_from(strategy));
  EXPECT_TRUE(plan.has_value()) << plan.error().message;
  return plan ? *plan : OperatorPlan{};
}

// HeteroInfer's table: what it chose for nine products on Snapdragon 8 Gen 3.
TEST(OperatorPlan, TheDescriptionsCostsGiveThePublishedTable) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  struct Row {
    int64_t n, k, first, last;
    OperatorCut cut;
    double gpu, npu;  // shares; of an activation-centric row 0
  };
  const Row rows[] = {
      {4096, 4096, 1, 1, OperatorCut::kWeightCentric, 0.5, 0.5},
      {28672, 4096, 1, 1, OperatorCut::kWeightCentric, 0.75, 0.25},
      {4096, 14336, 1, 1, OperatorCut::kNone, 1, 0},
      {4096, 4096, 128, 128, OperatorCut::kNone, 0, 1},
      {4096, 4096, 193, 255, OperatorCut::kPadding, 0, 1},
      {4096, 4096, 256, 256, OperatorCut::kNone, 0, 1},
      {4096, 4096, 257, 272, OperatorCut::kActivationCentric, 0, 0},
      {4096, 14336, 256, 256, OperatorCut::kWeightCentric, 0.4, 0.6},
      {4096, 14336, 257, 383, OperatorCut::kHybrid, 0.4, 0.6},
      {4096, 14336, 384, 384, OperatorCut::kWeightCentric, 0.4, 0.6},
  };
  for (const Row& row : rows) {
    for (int64_t m = row.first; m <= row.last; ++m) {
      // Lengths at which nothing is padded are the rule's other name.
      const bool whole = row.cut == OperatorCut::kHybrid && m % 32 == 0;
      const bool exact = row.cut == OperatorCut::kPadding && m % 32 == 0;
      const OperatorCut cut = whole   ? OperatorCut::kWeightCentric
                              : exact ? OperatorCut::kNone
                                      : row.cut;
      const OperatorPlan found = plan(cost, {m, row.n, row.k}, "heteroinfer");
      EXPECT_EQ(to_string(found.chosen.cut), to_string(cut))
          << row.n << "x" << row.k << " " << m << ": " << found.reason;
      Shares expected;
      if (row.cut == OperatorCut::kActivationCentric) {
        expected = {{"gpu", static_cast<double>(m - 256) / static_cast<double>(m)},
                    {"npu", 256 / static_cast<double>(m)}};
      } else {
        if (row.gpu > 0) expected["gpu"] = row.gpu;
        if (row.npu > 0) expected["npu"] = row.npu;
      }
      EXPECT_EQ(shares(cost, found.chosen), expected) << row.n << "x" << row.k << " " << m;
      EXPECT_TRUE(found.continuous.has_value());
    }
  }
}

TEST(OperatorPlan, TheContinuousOptimumStandsBesideTheGrid) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const OperatorPlan down = plan(cost, {256, 4096, 14336}, "heteroinfer");
  EXPECT_EQ(down.continuous->cut, OperatorCut::kWeightCentric);
  EXPECT_NEAR(shares(cost, *down.continuous)["gpu"], 0.40, 0.03);
  EXPECT_LE(down.continuous->us(), down.chosen.us());
}

TEST(OperatorPlan, DecodeIsCutByBandwidth) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const OperatorPlan found = plan(cost, {1, 28672, 4096}, "troika");
  EXPECT_EQ(found.chosen.cut, OperatorCut::kWeightCentric);
  EXPECT_GE(shares(cost, found.chosen)["gpu"], 0.70);
  EXPECT_LE(shares(cost, found.chosen)["gpu"], 0.77);
  // As fixed costs vanish beside it, it is the ratio of the bandwidths.
  const OperatorPlan head = plan(cost, {1, 128256, 4096}, "troika");
  EXPECT_NEAR(shares(cost, head.chosen)["gpu"], 43.3 / 59.5, 0.02);
}

TEST(OperatorPlan, WhereTheMemoryGivesTwoNoMoreThanOneDecodeIsNotSplit) {
  const DescribedCost cost(*soc::find("core-ultra-5-125h"));
  for (const int64_t n : {1024, 4096, 14336, 28672, 128256}) {
    for (const int64_t k : {4096, 14336}) {
      for (const char* type : {"w4a16", "w8a16"}) {
        const Product product{1, n, k, type, type[1] == '4' ? 4.0 : 8.0};
        const OperatorPlan found = plan(cost, product, "troika");
        EXPECT_EQ(found.chosen.cut, OperatorCut::kNone) << n << "x" << k << found.reason;
        EXPECT_EQ(shares(cost, found.chosen), (Shares{{"gpu", 1}}));
      }
    }
  }
  // With many rows arithmetic decides, and both are used.
  EXPECT_EQ(plan(cost, {1024, 14336, 4096}, "troika").chosen.slices.size(), 2u);
}

TEST(OperatorPlan, OnlyTheCombinedBandwidthDecidesWhetherDecodeIsSplit) {
  soc::Soc soc = *soc::find("snapdragon-8-gen-3");
  for (soc::Unit& unit : soc.units) {
    unit.bandwidth = figure(43.3);
    for (soc::Path& path : unit.paths) {
      path.stream.reset();
      path.alone = figure(0);
    }
    if (unit.static_graphs) unit.static_graphs->full_rate_inputs.reset();
  }
  soc.memory.together[0].bandwidth = figure(43.3 * 1.036);
  EXPECT_EQ(plan(DescribedCost(soc), {1, 128256, 4096}, "troika").chosen.cut, OperatorCut::kNone);
  soc.memory.together[0].bandwidth = figure(59.5);
  EXPECT_EQ(plan(DescribedCost(soc), {1, 128256, 4096}, "troika").chosen.cut,
            OperatorCut::kWeightCentric);
}

TEST(OperatorPlan, TheRooflineIsThatOfBothDevices) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  // 1.2 TFLOPS less the unpacking, and 4.62.
  const Product product{256, 4096, 4096};
  const double gpu = cost.product(1, product)->compute_us;
  const double npu = cost.product(2, product)->compute_us;
  EXPECT_NEAR(plan(cost, product, "troika").roofline_us, 1 / (1 / gpu + 1 / npu), 1e-6);
}

TEST(OperatorPlan, StrategiesAreWhatTheySay) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const Product product{300, 4096, 4096};
  const auto us = [&](int64_t m) {
    const auto estimate = cost.product(2, {m, 4096, 4096});
    return estimate->fixed_us + estimate->work_us() + cost.join_us();
  };
  EXPECT_EQ(shares(cost, plan(cost, product, "single:gpu").chosen), (Shares{{"gpu", 1}}));
  const OperatorPlan layer = plan(cost, product, "layer");
  EXPECT_EQ(layer.chosen.cut, OperatorCut::kPadding);
  EXPECT_DOUBLE_EQ(layer.chosen.us(), us(320));
  const OperatorPlan padding = plan(cost, product, "padding");
  EXPECT_EQ(padding.chosen.cut, OperatorCut::kPadding);
  EXPECT_DOUBLE_EQ(padding.chosen.us(), us(512));
  const OperatorPlan pipe = plan(cost, product, "pipe");
  EXPECT_EQ(pipe.chosen.cut, OperatorCut::kPadding);
  EXPECT_DOUBLE_EQ(pipe.chosen.us(), us(256) + us(64) - cost.join_us());
  const OperatorPlan online = plan(cost, product, "online");
  EXPECT_EQ(online.chosen.cut, OperatorCut::kNone);
  EXPECT_DOUBLE_EQ(online.chosen.us(), us(300) + cost.build_us(2, 300));
  // The guard is what tells the forced form apart.
  EXPECT_EQ(plan(cost, {256, 4096, 4096}, "heteroinfer").chosen.slices.size(), 1u);
  EXPECT_EQ(plan(cost, {256, 4096, 4096}, "heteroinfer-forced").chosen.slices.size(), 2u);
  // Quanta of 256 rows or inputs; one row is cut by outputs.
  const OperatorPlan mosaic = plan(cost, {1024, 4096, 14336}, "heteromosaic");
  ASSERT_EQ(mosaic.chosen.slices.size(), 2u);
  for (const Slice& slice : mosaic.chosen.slices) {
    EXPECT_EQ(slice.rows % 256 + slice.inputs % 256, 0);
    EXPECT_EQ(slice.outputs, 4096);
  }
  EXPECT_EQ(plan(cost, {1, 28672, 4096}, "heteromosaic").chosen.cut, OperatorCut::kWeightCentric);
  EXPECT_EQ(plan(cost, {200, 4096, 4096}, "heteromosaic").chosen.slices.size(), 1u);
  // Troika may cut the inputs, where a deep slice is slow.
  EXPECT_EQ(plan(cost, {256, 4096, 14336}, "troika").chosen.cut, OperatorCut::kK);
}

TEST(OperatorPlan, WhatCannotBeIsRefused) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const Strategy troika = *strategy_from("troika");
  for (const Product& product : {Product{0, 1, 1}, Product{1, 0, 1}, Product{1, 1, -1},
                                 Product{1, 1, INT64_MAX}, Product{kMaxTokens + 1, 1, 1}}) {
    const auto refused = plan_operator(cost, product, troika);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
  const auto type = plan_operator(cost, {1, 32, 32, "w8a8", 8}, troika);
  ASSERT_FALSE(type.has_value());
  EXPECT_EQ(type.error().code, ErrorCode::kUnsupported);
  const auto device = plan_operator(cost, {1, 32, 32}, *strategy_from("single:tpu"));
  ASSERT_FALSE(device.has_value());
  EXPECT_NE(device.error().message.find("cpu, gpu, npu"), std::string::npos);
  EXPECT_EQ(plan_operator(cost, {1, 32, 32}, *strategy_from("single:cpu")).error().code,
            ErrorCode::kUnsupported);
  for (const char* name : {"", "single:", "fast", "heteroinfer "}) {
    EXPECT_FALSE(strategy_from(name).has_value()) << name;
  }
  for (const char* grid : {"", "1/", "1/0", "2/4", "1/-1", "1/4x", "1/99999", "0.25"}) {
    EXPECT_FALSE(grid_from(grid).has_value()) << grid;
  }
  EXPECT_EQ(*grid_from("1/5"), 5);
}

// Chips of one to four devices with small tiles, so that every division can be tried.
soc::Soc random_soc(std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return figure(std::uniform_real_distribution<double>(low, high)(random));
  };
  soc::Soc soc;
  soc.memory = {figure(200), uniform(60, 120), {}, {}};
  soc.sync = {uniform(0, 3), figure(400)};
  const size_t devices = 1 + random() % 4;
  for (size_t i = 0; i < devices; ++i) {
    soc::Unit unit;
    unit.name = std::string(1, static_cast<char>('a' + i));
    unit.bandwidth = uniform(5, 50);
    soc::Path path;
    path.types = {"w4a16"};
    path.rate = uniform(0.01, 0.3);
    path.alone = uniform(0, 3);
    if (random() % 2 == 0) {
      path.unpack = uniform(0, 1);
      path.unpack_tokens = figure(16);
    }
    if (random() % 2 == 0) path.stream = uniform(2, 40);
    unit.paths = {path};
    unit.only_products = random() % 2 == 0;
    if (random() % 2 == 0) {
      unit.law = soc::Law::kStatic;
      unit.static_graphs.emplace();
      unit.static_graphs->tile = figure(random() % 2 == 0 ? 8 : 16);
      unit.static_graphs->standard_lengths.values = {8, 16, 32};
      unit.static_graphs->full_rate_inputs = uniform(64, 512);
      unit.static_graphs->weight_stationary = uniform(0, 2);
    }
    soc.units.push_back(unit);
  }
  return soc;
}

// Tries every division on a cost model, knowing nothing of how the solver works.
class BruteForce {
 public:
  BruteForce(const DescribedCost& cost, const Product& product) : cost_(cost), product_(product) {}

  double best() {
    const size_t n = cost_.devices().size();
    for (mask_ = 1; mask_ < 1u << n; ++mask_) {
      set_.clear();
      double demand = 0;
      for (size_t i = 0; i < n; ++i) {
        if ((mask_ >> i & 1) == 0) continue;
        set_.push_back(i);
        demand += estimate(i, product_).demand_gbps();
      }
      speed_ = cost_.speed_together(mask_, demand);
      if (set_.size() == 1) {
        const double us = time(set_[0], product_, 1);
        take(us + (facts(set_[0]).only_products ? cost_.join_us() : 0));
        continue;
      }
      divide(product_.n, grain(&cost::DeviceFacts::n_tile, 1), &Product::n, 0);
      divide(product_.k, grain(&cost::DeviceFacts::k_tile, 32), &Product::k, sum_us());
      divide(product_.m, 1, &Product::m, 0);
    }
    return best_;
  }

 private:
  const cost::DeviceFacts& facts(size_t device) const { return cost_.devices()[device]; }

  cost::Estimate estimate(size_t device, Product product) const {
    const auto a = *cost_.product(device, product);
    product.weight_stationary = true;
    const auto b = *cost_.product(device, product);
    return b.work_us() < a.work_us() ? b : a;
  }
  double time(size_t device, const Product& product, double speed) const {
    const cost::Estimate e = estimate(device, product);
    return e.fixed_us + e.work_us() / speed;
  }
  void take(double us) { best_ = std::min(best_, us); }

  int64_t grain(int64_t cost::DeviceFacts::*tile, int64_t least) const {
    int64_t grain = least;
    for (const size_t device : set_) grain = std::lcm(grain, facts(device).*tile);
    return grain;
  }
  double sum_us() const {
    double least = HUGE_VAL;
    bool any = false;
    for (size_t i = 0; i < cost_.devices().size(); ++i) any = any || !facts(i).only_products;
    const double bytes = 4.0 * static_cast<double>(set_.size() + 1) *
                         static_cast<double>(product_.m) * static_cast<double>(product_.n);
    for (size_t i = 0; i < cost_.devices().size(); ++i) {
      if (any && facts(i).only_products) continue;
      least = std::min(least, cost_.elementwise(i, bytes).work_us());
    }
    return least;
  }

  // All sizes that are multiples of `grain`, but for one part that has the rest.
  void divide(int64_t extent, int64_t grain, int64_t Product::*dimension, double extra) {
    sizes_.assign(set_.size(), 0);
    // The part with the rest: the one of the smallest tile. Extents here are multiples.
    ASSERT_EQ(extent % grain, 0);
    place(0, extent, grain, dimension, extra);
  }

  bool allowed(size_t part, int64_t rows) const {
    const cost::DeviceFacts& own = facts(set_[part]);
    if (own.standard_lengths.empty()) return true;
    const bool all_bound = std::all_of(set_.begin(), set_.end(), [&](size_t device) {
      return !facts(device).standard_lengths.empty();
    });
    // Where all need whole lengths, the last one pads what is left.
    if (all_bound && part + 1 == set_.size()) return true;
    const int64_t longest = own.standard_lengths.back();
    const int64_t rest = rows % longest;
    return rest == 0 || std::find(own.standard_lengths.begin(), own.standard_lengths.end(), rest) !=
                            own.standard_lengths.end();
  }

  void place(size_t part, int64_t left, int64_t grain, int64_t Product::*dimension, double extra) {
    const bool last = part + 1 == set_.size();
    for (int64_t own = last ? left : grain; own <= left && own > 0; own += grain) {
      if (dimension == &Product::m && !allowed(part, own)) continue;
      sizes_[part] = own;
      if (!last) {
        place(part + 1, left - own, grain, dimension, extra);
        continue;
      }
      double slowest = 0;
      for (size_t i = 0; i < set_.size(); ++i) {
        Product slice = product_;
        slice.*dimension = sizes_[i];
        slowest = std::max(slowest, time(set_[i], slice, speed_));
      }
      take(slowest + cost_.join_us() + extra);
    }
  }

  const DescribedCost& cost_;
  Product product_;
  uint32_t mask_ = 0;
  std::vector<size_t> set_;
  std::vector<int64_t> sizes_;
  double speed_ = 1;
  double best_ = HUGE_VAL;
};

Product random_product(std::mt19937& random) {
  return {static_cast<int64_t>(1 + random() % 24), static_cast<int64_t>(16 * (1 + random() % 5)),
          static_cast<int64_t>(32 * (1 + random() % 8))};
}

TEST(OperatorPlan, EqualsBruteForceOnAThousandRandomChips) {
  std::mt19937 random(11);
  Strategy strategy = *strategy_from("troika");
  strategy.least_gain = 0;
  int split = 0;
  for (int i = 0; i < 1000; ++i) {
    const DescribedCost cost(random_soc(random));
    const Product product = random_product(random);
    const auto found = plan_operator(cost, product, strategy);
    ASSERT_TRUE(found.has_value());
    const double best = BruteForce(cost, product).best();
    EXPECT_NEAR(found->chosen.us(), best, 1e-9 * best) << i << ": " << found->reason;
    split += found->chosen.slices.size() > 1 ? 1 : 0;
  }
  // Both answers must occur often for this to prove anything.
  EXPECT_GT(split, 200);
  EXPECT_LT(split, 900);
}

TEST(OperatorPlan, DevicesInAnyOrderGiveTheSamePlan) {
  std::mt19937 random(12);
  const Strategy strategy = *strategy_from("troika");
  for (int i = 0; i < 200; ++i) {
    soc::Soc soc = random_soc(random);
    const Product product = random_product(random);
    const DescribedCost cost(soc);
    const auto first = plan_operator(cost, product, strategy);
    std::shuffle(soc.units.begin(), soc.units.end(), random);
    const DescribedCost shuffled(soc);
    const auto second = plan_operator(shuffled, product, strategy);
    ASSERT_TRUE(first.has_value() && second.has_value());
    EXPECT_EQ(first->chosen.cut, second->chosen.cut);
    EXPECT_EQ(first->chosen.us(), second->chosen.us());
    EXPECT_EQ(shares(cost, first->chosen), shares(shuffled, second->chosen));
    EXPECT_EQ(first->reason, second->reason);
  }
}

}  // namespace
}  // namespace troika::planner
