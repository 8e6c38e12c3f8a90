#include "troika/planner/layer_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace troika::planner {
namespace {

using Steps = std::vector<std::vector<LayerOption>>;

double crossing(const LayerOption& from, const LayerOption& to) {
  if (from.hands_on != to.continues) return HUGE_VAL;
  if (from.hands_on) return from.devices == to.devices ? 0 : HUGE_VAL;
  const uint32_t all = from.devices | to.devices;
  return (all & (all - 1)) != 0 ? 30 : 0;
}

Steps random_steps(std::mt19937& random) {
  Steps steps(1 + random() % 5);
  for (auto& options : steps) {
    options.resize(1 + random() % 5);
    for (LayerOption& option : options) {
      option.us = 10 + static_cast<double>(random() % 100);
      option.devices = 1 + static_cast<uint32_t>(random() % 7);
      option.hands_on = random() % 5 == 0;
      option.continues = random() % 5 == 0;
    }
  }
  return steps;
}

double time_of(const Steps& steps, const std::vector<size_t>& options) {
  double us = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    const size_t next = (s + 1) % steps.size();
    us += steps[s][options[s]].us + crossing(steps[s][options[s]], steps[next][options[next]]);
  }
  return us;
}

double enumerated(const Steps& steps) {
  std::vector<size_t> options(steps.size(), 0);
  double best = HUGE_VAL;
  while (true) {
    best = std::min(best, time_of(steps, options));
    size_t s = 0;
    while (s < steps.size() && ++options[s] == steps[s].size()) options[s++] = 0;
    if (s == steps.size()) return best;
  }
}

TEST(LayerPath, EqualsBruteForceOnAThousandRandomLayers) {
  std::mt19937 random(1);
  int impossible = 0;
  for (int i = 0; i < 1000; ++i) {
    const Steps steps = random_steps(random);
    const auto path = best_layer_path(steps, crossing);
    const double best = enumerated(steps);
    ASSERT_EQ(path.has_value(), std::isfinite(best)) << i;
    impossible += path ? 0 : 1;
    if (!path) continue;
    EXPECT_DOUBLE_EQ(path->us, best) << i;
    EXPECT_DOUBLE_EQ(time_of(steps, path->options), best) << i;
  }
  EXPECT_GT(impossible, 10);
  EXPECT_LT(impossible, 500);
}

// A device that is a little faster at one step is not worth two crossings.
TEST(LayerPath, CrossingsCount) {
  const auto on = [](uint32_t devices, double us) {
    return LayerOption{us, devices, false, false};
  };
  Steps steps = {{on(1, 100), on(2, 150)}, {on(1, 100), on(2, 60)}, {on(1, 100), on(2, 150)}};
  EXPECT_EQ(best_layer_path(steps, crossing)->us, 300);
  steps[1][1].us = 30;
  EXPECT_EQ(best_layer_path(steps, crossing)->us, 290);
  EXPECT_EQ(best_layer_path(steps, crossing)->options, (std::vector<size_t>{0, 1, 0}));
}

TEST(LayerPath, OfNothingThereIsNone) {
  EXPECT_FALSE(best_layer_path({}, crossing).has_value());
  EXPECT_FALSE(best_layer_path({{}}, crossing).has_value());
}

}  // namespace
}  // namespace troika::planner
