#include "troika/engine/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace troika::engine {
namespace {

using ::testing::HasSubstr;

plan::RowsBucket shared(double first) {
  plan::RowsBucket bucket;
  bucket.max_rows = 1;
  plan::Placement placement;
  placement.stage = graph::Stage::kG2;
  placement.cut = plan::Cut::kPaired;
  placement.parts = {{"a", first, false}, {"b", 1 - first, false}};
  bucket.placements = {placement};
  return bucket;
}

plan::RowsBucket alone(const char* device) {
  plan::RowsBucket bucket = shared(0.5);
  bucket.placements[0].parts = {{device, 1, false}};
  return bucket;
}

const std::vector<TuneChoice> kChoices = {
    {"paired", shared(0.5), false}, {"a alone", alone("a"), true}, {"b alone", alone("b"), true}};

// `a` takes 100 us for everything, `b` 150 us; a join costs `join` us.
double true_us(const plan::RowsBucket& bucket, double join) {
  const auto& parts = bucket.placements[0].parts;
  const auto us = [](const plan::Part& part) {
    return part.share * (part.device == "a" ? 100 : 150);
  };
  if (parts.size() == 1) return us(parts[0]);
  return std::max(us(parts[0]), us(parts[1])) + join;
}

// Measured with noise, on virtual time.
class Machine final : public Clock {
 public:
  Machine(double join, double noise, uint32_t seed) : join_(join), noise_(noise), random_(seed) {}
  TimePoint now() const override { return now_; }
  planner::MeasurePass measure() {
    return [this](const plan::RowsBucket& bucket) -> Result<double> {
      std::normal_distribution<double> spread(0, noise_);
      plan::Plan plan;
      plan.buckets = {bucket};
      if (compiled_.insert(plan::to_json(plan)).second) now_ += compile_time;
      if (now_ >= deadline) return make_error(ErrorCode::kCancelled, "it is late");
      const double us = true_us(bucket, join_) * std::exp(spread(random_));
      now_ += std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(us));
      ++runs;
      return us;
    };
  }
  int runs = 0;
  Duration compile_time{};  // of each bucket when it is first measured
  TimePoint deadline = TimePoint::max();

 private:
  double join_;
  double noise_;
  std::mt19937 random_;
  std::set<std::string> compiled_;
  TimePoint now_{};
};

TEST(Tuner, TakesWhatIsFasterAndMovesItsShares) {
  Machine machine(10, 0.01, 1);
  const auto tuned = tune_pass(kChoices, machine.measure(), {}, machine);
  ASSERT_TRUE(tuned.has_value()) << tuned.error().message;
  EXPECT_EQ(tuned->chosen.name, "paired");
  EXPECT_FALSE(tuned->refused);
  // The best is 0.6 on `a`: 70 us; as planned it takes 85.
  EXPECT_LT(true_us(tuned->chosen.bucket, 10), 73);
  EXPECT_EQ(tuned->best_single, "a alone");
  EXPECT_NEAR(tuned->best_single_us, 100, 4);
  EXPECT_THAT(tuned->reason, HasSubstr("shares moved"));
}

TEST(Tuner, RefusesWhatDoesNotPayAndSaysWhy) {
  Machine machine(40, 0.01, 1);
  const auto tuned = tune_pass(kChoices, machine.measure(), {}, machine);
  ASSERT_TRUE(tuned.has_value());
  EXPECT_EQ(tuned->chosen.name, "a alone");
  EXPECT_TRUE(tuned->refused);
  EXPECT_THAT(tuned->reason, HasSubstr("co-execution is refused: paired is refused after"));
}

TEST(Tuner, NoiseSeldomTalksItIntoAWorsePlan) {
  int worse = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    // As planned, sharing takes 3 % longer than `a` alone.
    Machine machine(28, 0.1, seed);
    const std::vector<TuneChoice> choices = {{"paired", shared(0.5), false},
                                             {"a alone", alone("a"), true}};
    TuneOptions options;
    options.share_steps.clear();
    const auto tuned = tune_pass(choices, machine.measure(), options, machine);
    ASSERT_TRUE(tuned.has_value());
    if (true_us(tuned->chosen.bucket, 28) > 100.001) ++worse;
  }
  EXPECT_LT(worse, 5);
}

TEST(Tuner, EndsWhenTheBudgetIsSpent) {
  Machine machine(10, 0.01, 1);
  TuneOptions options;
  options.budget = std::chrono::microseconds(1);
  const auto tuned = tune_pass(kChoices, machine.measure(), options, machine);
  ASSERT_TRUE(tuned.has_value());
  EXPECT_LT(machine.runs, 40);
  EXPECT_FALSE(tune_pass({}, machine.measure(), options, machine).has_value());
}

// Where compiling takes long, what would not be ready in time is not begun.
TEST(Tuner, CompilingCountsAsTimeSpent) {
  using namespace std::chrono_literals;
  Machine machine(10, 0.01, 1);
  machine.compile_time = 10s;
  TuneOptions options;
  options.budget = 45s;
  const auto tuned = tune_pass(kChoices, machine.measure(), options, machine);
  ASSERT_TRUE(tuned.has_value());
  EXPECT_TRUE(tuned->confirmed);
  EXPECT_EQ(tuned->chosen.name, "paired");
  EXPECT_LE(machine.now() - TimePoint{}, options.budget);
}

TEST(Tuner, WhatIsKnownWhenItIsCancelledStays) {
  using namespace std::chrono_literals;
  for (const auto seconds : {1s, 15s, 25s, 31s}) {
    Machine machine(10, 0.01, 1);
    machine.compile_time = 10s;
    machine.deadline = TimePoint{} + seconds;
    const auto tuned = tune_pass(kChoices, machine.measure(), {}, machine);
    ASSERT_TRUE(tuned.has_value());
    // Three are compiled before a plan that shares can be held against one device.
    EXPECT_EQ(tuned->confirmed, seconds > 30s) << seconds.count();
    EXPECT_EQ(tuned->chosen.name, "paired");
    EXPECT_EQ(tuned->measured_us > 0, tuned->confirmed);
  }
}

TEST(Tuner, WhatIsHopelessIsNotMeasuredInPairs) {
  Machine machine(100, 0.01, 1);
  const auto tuned = tune_pass(kChoices, machine.measure(), {}, machine);
  ASSERT_TRUE(tuned.has_value());
  EXPECT_TRUE(tuned->refused);
  EXPECT_EQ(tuned->chosen.name, "a alone");
  EXPECT_LT(machine.runs, 10);
  EXPECT_THAT(tuned->reason, HasSubstr("co-execution is refused: paired takes"));
}

TEST(Tuner, DevicesThatShouldTakeTwiceAsLongAreNotCompiled) {
  planner::PassPlan pass;
  pass.name = "paired";
  pass.bucket = shared(0.5);
  pass.best_single = "a alone";
  pass.best_single_us = 100;
  pass.alternatives = {{"a alone", alone("a"), 100, 0, ""}, {"b alone", alone("b"), 210, 0, ""}};
  const auto choices = choices_of(pass, 3);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[1].name, "a alone");
}

TEST(Tuner, TellsWhatCannotBeMeasured) {
  const auto tuned =
      tune_pass(kChoices, [](const plan::RowsBucket&) -> Result<double> { return NAN; }, {});
  ASSERT_FALSE(tuned.has_value());
  EXPECT_THAT(tuned.error().message, HasSubstr("took nan us"));
}

TEST(Tuner, MovedSharesStayWithinTheWhole) {
  const auto more = with_moved_shares(shared(0.5), "a", 0.08);
  EXPECT_NEAR(more.placements[0].parts[0].share, 0.58, 1e-12);
  EXPECT_NEAR(more.placements[0].parts[1].share, 0.42, 1e-12);
  const auto none = with_moved_shares(shared(0.05), "a", -0.08);
  EXPECT_EQ(none.placements[0].parts[0].share, 0);
  EXPECT_EQ(with_moved_shares(shared(0.95), "a", 0.08).placements[0].parts[0].share, 0.95);
}

}  // namespace
}  // namespace troika::engine
