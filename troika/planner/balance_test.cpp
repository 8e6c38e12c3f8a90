#include "troika/planner/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace troika::planner {
namespace {

using Times = std::vector<std::vector<double>>;  // by part and units, from 1

double brute_force(const Times& times, size_t part, int64_t left) {
  if (part + 1 == times.size())
    return left >= 1 ? times[part][static_cast<size_t>(left)] : HUGE_VAL;
  double best = HUGE_VAL;
  for (int64_t own = 1; own < left; ++own) {
    best = std::min(best, std::max(times[part][static_cast<size_t>(own)],
                                   brute_force(times, part + 1, left - own)));
  }
  return best;
}

// Rising times with flat stretches and jumps.
Times random_times(std::mt19937& random, size_t parts, int64_t units) {
  Times times(parts);
  for (auto& part : times) {
    double us = static_cast<double>(random() % 50);
    for (int64_t i = 0; i <= units; ++i) {
      part.push_back(us);
      if (random() % 3 != 0) us += static_cast<double>(random() % 20);
    }
  }
  return times;
}

TEST(Balance, EqualsBruteForce) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const size_t parts = 1 + random() % 4;
    const auto units = static_cast<int64_t>(parts + random() % 14);
    const Times times = random_times(random, parts, units);
    const auto time = [&](size_t part, int64_t n) { return times[part][static_cast<size_t>(n)]; };
    const auto solved = balance(parts, units, time);
    ASSERT_TRUE(solved.has_value());
    EXPECT_EQ(solved->us, brute_force(times, 0, units));
    int64_t given = 0;
    double slowest = 0;
    for (size_t part = 0; part < parts; ++part) {
      ASSERT_GE(solved->units[part], 1);
      given += solved->units[part];
      slowest = std::max(slowest, time(part, solved->units[part]));
    }
    EXPECT_EQ(given, units);
    EXPECT_EQ(slowest, solved->us);
  }
}

TEST(Balance, FewerUnitsThanPartsCannotBeShared) {
  const auto time = [](size_t, int64_t n) { return static_cast<double>(n); };
  EXPECT_FALSE(balance(3, 2, time).has_value());
  EXPECT_FALSE(balance(0, 2, time).has_value());
}

}  // namespace
}  // namespace troika::planner
