#include "troika/planner/confirm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace troika::planner {
namespace {

// A bucket whose max_rows says how long it takes.
plan::RowsBucket taking(int64_t us) {
  plan::RowsBucket bucket;
  bucket.max_rows = us;
  return bucket;
}

// Times with noise of this deviation, and a machine that becomes slower by `drift` with each run.
MeasurePass noisy(uint32_t seed, double deviation, double drift = 0) {
  auto random = std::make_shared<std::mt19937>(seed);
  auto runs = std::make_shared<int>(0);
  return [=](const plan::RowsBucket& bucket) -> Result<double> {
    std::normal_distribution<double> noise(0, deviation);
    const double slow = 1 + drift * (*runs)++;
    return static_cast<double>(bucket.max_rows) * slow * std::exp(noise(*random));
  };
}

TEST(Confirm, WithoutNoiseTheFasterOneIsTaken) {
  const auto faster = confirm(taking(1000), taking(990), noisy(1, 1e-6));
  ASSERT_TRUE(faster.has_value());
  EXPECT_TRUE(faster->accepted);
  EXPECT_EQ(faster->pairs, 6);
  EXPECT_NEAR(faster->gain, 0.01, 1e-4);
  EXPECT_FALSE(confirm(taking(1000), taking(1010), noisy(1, 1e-6))->accepted);
  ConfirmOptions five;
  five.least_gain = 0.05;
  EXPECT_FALSE(confirm(taking(1000), taking(990), noisy(1, 1e-6), five)->accepted);
}

TEST(Confirm, ADriftOfTheMachineFallsOnBoth) {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    accepted += confirm(taking(1000), taking(1000), noisy(seed, 0.02, 0.01))->accepted ? 1 : 0;
  }
  EXPECT_LE(accepted, 2);
}

// With noise of 10 %: of plans that take up to 10 % more or less time, six in turn.
TEST(Confirm, TuningOnNoiseSeldomEndsWithASlowerPlan) {
  int worse = 0;
  int better = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<plan::RowsBucket> challengers;
    for (int i = 0; i < 6; ++i) challengers.push_back(taking(90000 + random() % 20000));
    const auto tuned = tune_measured(taking(100000), challengers, noisy(seed + 1000, 0.1));
    ASSERT_TRUE(tuned.has_value());
    if (tuned->winner == 0) continue;
    const int64_t us = challengers[tuned->winner - 1].max_rows;
    worse += us > 100000 ? 1 : 0;
    better += us < 100000 ? 1 : 0;
  }
  EXPECT_LT(worse, 5);
  EXPECT_GT(better, 20);  // it does not just refuse all
}

TEST(Confirm, OfAllTheSameSeldomAnyIsTaken) {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::vector<plan::RowsBucket> same(6, taking(1000));
    accepted += tune_measured(taking(1000), same, noisy(seed, 0.1))->winner > 0 ? 1 : 0;
  }
  EXPECT_LT(accepted, 5);
}

TEST(Confirm, ErrorsOfMeasuringAreReturned) {
  const auto lost = [](const plan::RowsBucket&) -> Result<double> {
    return make_error(ErrorCode::kDeviceFailed, "gone");
  };
  EXPECT_EQ(confirm(taking(1), taking(1), lost).error().code, ErrorCode::kDeviceFailed);
  const auto never = [](const plan::RowsBucket&) -> Result<double> { return HUGE_VAL; };
  EXPECT_EQ(confirm(taking(1), taking(1), never).error().code, ErrorCode::kInvalidData);
  ConfirmOptions none;
  none.least_pairs = 0;
  EXPECT_EQ(confirm(taking(1), taking(1), noisy(1, 0.1), none).error().code,
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::planner
