// Bounded search over schedules of one pass: what the operator solver gives, in every number of
// chunks and order that the strategy allows, and the best of these tuned on their traces.
#pragma once

#include <vector>

#include "troika/planner/hill_climb.h"
#include "troika/planner/pass_candidates.h"

namespace troika::planner {

struct Schedules {
  std::vector<Candidate> candidates;  // of each way to cut and to tune the best, fastest first
  std::vector<TunedBy> steps;         // of the climb that ended best
};

Result<Schedules> search_schedules(const PassSpace& space, const Strategy& strategy,
                                   PassEvaluator& evaluator);

}  // namespace troika::planner
