#include "troika/cost/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace troika::cost {
namespace {

TEST(Roofline, ArithmeticBoundDevicesAddUp) {
  // 100 and 300 GFLOPS, needing 1 and 3 of 10 GB/s.
  const Roof roofs[] = {{100, 10, 100}, {300, 10, 100}};
  const CoExecutionBound bound = co_execution_bound(roofs, 10);
  EXPECT_DOUBLE_EQ(bound.gflops, 400);
  EXPECT_DOUBLE_EQ(bound.shares[0], 0.25);
  EXPECT_DOUBLE_EQ(bound.shares[1], 0.75);
}

TEST(Roofline, MemoryBoundDevicesGetWhatTheMemoryGives) {
  // At 2 operations per byte: 86.6 and 32.4 GFLOPS alone, 59.5 GB/s together.
  const Roof roofs[] = {{1000, 43.3, 2}, {1000, 16.2, 2}};
  const CoExecutionBound bound = co_execution_bound(roofs, 59.5);
  EXPECT_NEAR(bound.gflops, 119, 1e-9);
  EXPECT_NEAR(bound.shares[0], 43.3 / 59.5, 1e-9);
  EXPECT_NEAR(co_execution_bound(roofs, 50).gflops, 100, 1e-9);
}

TEST(Roofline, OneDeviceIsTheUsualRoofline) {
  const Roof low[] = {{1000, 50, 4}};
  EXPECT_DOUBLE_EQ(co_execution_bound(low, 60).gflops, 200);
  const Roof high[] = {{1000, 50, 40}};
  EXPECT_DOUBLE_EQ(co_execution_bound(high, 60).gflops, 1000);
}

// The formula itself, on a grid of shares.
double by_formula(std::span<const Roof> roofs, double shared, int steps) {
  double best = 0;
  for (int a = 0; a <= steps; ++a) {
    for (int b = 0; a + b <= steps; ++b) {
      const double shares[] = {1.0 * a / steps, 1.0 * b / steps, 1.0 * (steps - a - b) / steps};
      double gflops = 1e300;
      double bytes = 0;
      for (size_t i = 0; i < 3; ++i) {
        if (shares[i] > 0) gflops = std::min(gflops, roofs[i].attainable_gflops() / shares[i]);
        bytes += shares[i] / roofs[i].intensity;
      }
      best = std::max(best, std::min(gflops, shared / bytes));
    }
  }
  return best;
}

TEST(Roofline, EqualsTheFormulaOnRandomDevices) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(1, 100);
  for (int i = 0; i < 200; ++i) {
    Roof roofs[3];
    for (Roof& roof : roofs) roof = {10 * uniform(random), uniform(random), uniform(random) / 10};
    const double shared = uniform(random);
    const double bound = co_execution_bound(roofs, shared).gflops;
    const double grid = by_formula(roofs, shared, 200);
    EXPECT_GE(bound, grid * (1 - 1e-9));
    EXPECT_LE(bound, grid * 1.03);
  }
}

}  // namespace
}  // namespace troika::cost
