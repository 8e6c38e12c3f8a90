#include "troika/cost/described_cost.h"

#include <gtest/gtest.h>

#include "troika/soc/catalogue.h"

namespace troika::cost {
namespace {

soc::Figure figure(double value) { return {value, soc::FigureKind::kFitted, "test"}; }

// Numbers of few digits, so that costs can be worked out by hand.
soc::Soc simple_soc() {
  soc::Soc soc;
  soc.name = "simple";
  soc.memory = {figure(100), figure(90), {}, {}};
  soc.sync = {figure(10), figure(400)};
  soc::Path path;
  path.types = {"w4a16"};
  path.rate = figure(1);
  path.alone = figure(5);
  soc::Unit linear;
  linear.name = "linear";
  linear.bandwidth = figure(50);
  linear.launch_queued = figure(2);
  linear.launch_drained = figure(7);
  linear.paths = {path};
  soc::Unit fixed = linear;
  fixed.name = "static";
  fixed.kind = soc::UnitKind::kNpu;
  fixed.law = soc::Law::kStatic;
  fixed.static_graphs.emplace();
  fixed.static_graphs->tile = figure(32);
  fixed.static_graphs->standard_lengths.values = {64, 128};
  fixed.static_graphs->build_base = figure(3);
  fixed.static_graphs->build_per_token = figure(0.5);
  fixed.static_graphs->full_rate_inputs = figure(1024);
  fixed.static_graphs->weight_stationary = figure(2);
  soc::Unit quanta = linear;
  quanta.name = "quanta";
  quanta.law = soc::Law::kQuanta;
  quanta.quanta = soc::Quanta{figure(256), figure(64), figure(512)};
  soc.units = {linear, fixed, quanta};
  return soc;
}

TEST(DescribedCost, ALinearDeviceTakesTheLongerOfArithmeticAndMemory) {
  const DescribedCost cost(simple_soc());
  // 2 * 1000 * 1000 * 1000 operations at 1 TFLOPS; 0.5 MB of weights and 4 MB of activations.
  const auto many = cost.product(0, {1000, 1000, 1000});
  ASSERT_TRUE(many.has_value());
  EXPECT_DOUBLE_EQ(many->compute_us, 2000);
  EXPECT_DOUBLE_EQ(many->bytes, 4.5e6);
  EXPECT_DOUBLE_EQ(many->memory_us, 90);
  EXPECT_DOUBLE_EQ(many->work_us(), 2000);
  EXPECT_DOUBLE_EQ(many->demand_gbps(), 2.25);
  EXPECT_DOUBLE_EQ(many->fixed_us, 5);
  // One row: 2 us of arithmetic, 504 kB at 50 GB/s.
  const auto one = cost.product(0, {1, 1000, 1000});
  EXPECT_DOUBLE_EQ(one->compute_us, 2);
  EXPECT_DOUBLE_EQ(one->work_us(), 10.08);
  EXPECT_DOUBLE_EQ(one->demand_gbps(), 50);
}

TEST(DescribedCost, UnpackingIsPaidOnceForAFullTileOfRowsAndInPartBelow) {
  soc::Soc soc = simple_soc();
  soc.units[0].paths[0].unpack = figure(0.2);
  soc.units[0].paths[0].unpack_tokens = figure(100);
  const DescribedCost cost(soc);
  // A million weights: 200 us from 100 rows on, 100 us with 50.
  EXPECT_DOUBLE_EQ(cost.product(0, {50, 1000, 1000})->compute_us, 100 + 100);
  EXPECT_DOUBLE_EQ(cost.product(0, {100, 1000, 1000})->compute_us, 200 + 200);
  EXPECT_DOUBLE_EQ(cost.product(0, {200, 1000, 1000})->compute_us, 400 + 200);
}

TEST(DescribedCost, AStaticDevicePadsEveryExtentToItsTile) {
  const DescribedCost cost(simple_soc());
  const double tile = cost.product(1, {32, 32, 32})->compute_us;
  EXPECT_DOUBLE_EQ(tile, 2 * 32 * 32 * 32 * 1e-6);
  EXPECT_DOUBLE_EQ(cost.product(1, {1, 1, 1})->compute_us, tile);
  EXPECT_DOUBLE_EQ(cost.product(1, {33, 32, 32})->compute_us, 2 * tile);
  EXPECT_DOUBLE_EQ(cost.product(1, {32, 33, 32})->compute_us, 2 * tile);
  EXPECT_DOUBLE_EQ(cost.product(1, {32, 32, 33})->compute_us, 2 * tile);
}

TEST(DescribedCost, DeepSlicesAreSlowButNarrowOnesScaleInProportion) {
  const DescribedCost cost(simple_soc());
  const double flat = cost.product(1, {64, 1024, 1024})->compute_us;
  EXPECT_DOUBLE_EQ(cost.product(1, {64, 1024, 4096})->compute_us, 4 * 4 * flat);
  EXPECT_DOUBLE_EQ(cost.product(1, {64, 512, 4096})->compute_us, 2 * 4 * flat);
  EXPECT_DOUBLE_EQ(cost.product(1, {64, 1024, 2048})->compute_us, 2 * 2 * flat);
  EXPECT_DOUBLE_EQ(cost.product(1, {64, 4096, 1024})->compute_us, 4 * flat);
}

TEST(DescribedCost, HoldingALargeWeightInPlaceIsTheWrongOrder) {
  const DescribedCost cost(simple_soc());
  Product wide{64, 4096, 1024};
  const double right = cost.product(1, wide)->compute_us;
  wide.weight_stationary = true;
  EXPECT_DOUBLE_EQ(cost.product(1, wide)->compute_us, 2 * 4 * right);
  // No choice on a device without the law.
  EXPECT_DOUBLE_EQ(cost.product(0, wide)->compute_us,
                   cost.product(0, {64, 4096, 1024})->compute_us);
}

TEST(DescribedCost, AStreamLimitsHowFastWeightsAreTakenIn) {
  soc::Soc soc = simple_soc();
  soc.units[1].paths[0].stream = figure(10);
  const DescribedCost cost(soc);
  // 524,288 bytes at 10 GB/s; with four times the full-rate inputs, four times as long for each.
  EXPECT_NEAR(cost.product(1, {1, 1024, 1024})->work_us(), 67.108864, 1e-9);
  EXPECT_DOUBLE_EQ(cost.product(1, {1, 1024, 1024})->compute_us, 67.108864);
  EXPECT_DOUBLE_EQ(cost.product(1, {1, 64, 1024})->compute_us, 3.2768 * 64 / 64 * 1.28);
}

TEST(DescribedCost, QuantaPadToTheirMultiples) {
  const DescribedCost cost(simple_soc());
  EXPECT_DOUBLE_EQ(cost.product(2, {1, 1, 1})->compute_us, 2.0 * 256 * 64 * 512 * 1e-6);
  EXPECT_DOUBLE_EQ(cost.product(2, {257, 64, 513})->compute_us, 2.0 * 512 * 64 * 1024 * 1e-6);
}

TEST(DescribedCost, PathsServeTheirTokensAndTypesOnly) {
  soc::Soc soc = simple_soc();
  soc.units[0].paths[0].from_tokens = 2;
  soc.units[0].paths[0].to_tokens = 8;
  const DescribedCost cost(soc);
  EXPECT_FALSE(cost.product(0, {1, 32, 32}).has_value());
  EXPECT_TRUE(cost.product(0, {2, 32, 32}).has_value());
  EXPECT_TRUE(cost.product(0, {8, 32, 32}).has_value());
  EXPECT_FALSE(cost.product(0, {9, 32, 32}).has_value());
  EXPECT_FALSE(cost.product(0, {4, 32, 32, "w8a16", 8}).has_value());
}

TEST(DescribedCost, LaunchJoinAndBuildAreAsDescribed) {
  const DescribedCost cost(simple_soc());
  EXPECT_DOUBLE_EQ(cost.launch_us(0, true), 7);
  EXPECT_DOUBLE_EQ(cost.launch_us(0, false), 2);
  EXPECT_DOUBLE_EQ(cost.join_us(), 10);
  EXPECT_DOUBLE_EQ(cost.blocking_join_us(), 400);
  EXPECT_DOUBLE_EQ(cost.build_us(0, 100), 0);
  EXPECT_DOUBLE_EQ(cost.build_us(1, 100), 53'000);
  EXPECT_FALSE(cost.attention(0, 1, 1).has_value());
  EXPECT_DOUBLE_EQ(cost.elementwise(0, 5e6).work_us(), 100);
}

// How far the description is from the times that were used to make it (HeteroInfer's table of
// operators, microseconds). A fit, so this proves that the numbers belong together, no more.
TEST(DescribedCost, Snapdragon8Gen3IsNearTheTableThatItWasFittedTo) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const size_t gpu = *cost.soc().unit("gpu");
  const size_t npu = *cost.soc().unit("npu");
  struct Row {
    size_t unit;
    Product product;
    double us;
    double tolerance;
  };
  const Row rows[] = {
      {gpu, {1, 4096, 4096}, 511, 0.05},      {npu, {1, 4096, 4096}, 693, 0.05},
      {gpu, {1, 28672, 4096}, 1903, 0.15},    {npu, {1, 28672, 4096}, 3886, 0.05},
      {gpu, {1, 4096, 14336}, 1467, 0.35},    {npu, {1, 4096, 14336}, 6506, 0.05},
      {gpu, {128, 4096, 4096}, 7306, 0.05},   {npu, {128, 4096, 4096}, 912, 0.05},
      {gpu, {256, 4096, 4096}, 10841, 0.05},  {npu, {256, 4096, 4096}, 1884, 0.05},
      {gpu, {256, 4096, 14336}, 35231, 0.06}, {npu, {256, 4096, 14336}, 23445, 0.05},
  };
  double total = 0;
  for (const Row& row : rows) {
    const auto estimate = cost.product(row.unit, row.product);
    ASSERT_TRUE(estimate.has_value());
    const double error = (estimate->fixed_us + estimate->work_us()) / row.us - 1;
    EXPECT_LE(std::abs(error), row.tolerance)
        << cost.devices()[row.unit].name << " " << row.product.m << " " << row.product.k;
    total += std::abs(error) / std::size(rows);
  }
  EXPECT_LE(total, 0.06);
}

TEST(DescribedCost, TheGraphBuildLawGivesThePublishedTimesForFourGraphs) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const size_t npu = *cost.soc().unit("npu");
  EXPECT_NEAR(4 * cost.build_us(npu, 135) * 1e-3, 408.4, 0.01 * 408.4);
  EXPECT_NEAR(4 * cost.build_us(npu, 1000) * 1e-3, 2050, 0.01 * 2050);
}

TEST(DescribedCost, TheWrongOrderCostsSixTimesAsPublished) {
  const DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const size_t npu = *cost.soc().unit("npu");
  Product product{256, 14336, 4096};
  const double right = cost.product(npu, product)->work_us();
  product.weight_stationary = true;
  EXPECT_NEAR(cost.product(npu, product)->work_us() / right, 6, 0.06);
}

}  // namespace
}  // namespace troika::cost
