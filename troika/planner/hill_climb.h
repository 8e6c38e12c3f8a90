// Trace-guided tuning by simulation: single edits of a bucket, one accepted after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/planner/edits.h"

namespace troika::planner {

struct Climb {
  plan::RowsBucket bucket;
  double score = 0;
  double us = 0;
  std::vector<TunedBy> steps;
  int64_t edits = 0;  // of the steps, of which one may be two edits
};

struct ClimbLimits {
  int64_t edits = 200;         // accepted
  int64_t evaluations = 2000;  // of this climb; the evaluator's own budget holds besides
};

// From `start` until nothing gains what the strategy asks for, or the limits are reached. All edits
// of a round are tried, the most critical first, and the best is taken; where none gains, and the
// strategy has all edits, two at once. Deterministic.
Climb climb(const PassSpace& space, const Strategy& strategy, const plan::RowsBucket& start,
            PassEvaluator& evaluator, const ClimbLimits& limits = {});

}  // namespace troika::planner
