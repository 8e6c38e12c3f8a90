// The exact solution of one small problem: divide equal units of work among parts so that the
// slowest part is done as early as can be.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troika::planner {

struct Balance {
  double us = 0;               // of the slowest part
  std::vector<int64_t> units;  // by part, each at least 1
};

// `time(part, units)` is asked for 1 to `units` and must not fall with more units. nullopt with
// fewer units than parts. Takes about (parts * log2(units))^2 questions.
std::optional<Balance> balance(size_t parts, int64_t units,
                               const std::function<double(size_t, int64_t)>& time);

}  // namespace troika::planner
