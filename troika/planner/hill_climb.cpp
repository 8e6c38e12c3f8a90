#include "troika/planner/hill_climb.h"

#include <algorithm>
#include <cmath>

namespace troika::planner {
namespace {

// So many edits of a round are looked at before one that gains is taken.
constexpr int64_t kLeastTried = 24;

}  // namespace

Climb climb(const PassSpace& space, const Strategy& strategy, const plan::RowsBucket& start,
            PassEvaluator& evaluator, const ClimbLimits& limits) {
  const int64_t end = evaluator.evaluations() + limits.evaluations;
  const auto may_go_on = [&] { return evaluator.may_go_on() && evaluator.evaluations() < end; };
  Climb climb{start, evaluator.score(start), {}};
  while (std::isfinite(climb.us) && may_go_on() &&
         static_cast<int64_t>(climb.steps.size()) < limits.edits) {
    // The evaluator shows the trace of the bucket that it scored last.
    evaluator.score(climb.bucket);
    std::vector<Edit> edits = edits_of(space, strategy, climb.bucket, evaluator);
    const double least = std::max(strategy.accept_us, strategy.accept_part * climb.us);
    double best_us = climb.us - least;
    Edit* best = nullptr;
    int64_t tried = 0;
    for (Edit& edit : edits) {
      if (!may_go_on() || (best != nullptr && tried >= kLeastTried)) break;
      ++tried;
      const double us = evaluator.score(edit.bucket);
      if (us >= best_us) continue;
      best_us = us;
      best = &edit;
    }
    if (best == nullptr) break;
    climb.bucket = std::move(best->bucket);
    climb.us = best_us;
    climb.steps.push_back({std::move(best->name), best_us});
  }
  return climb;
}

}  // namespace troika::planner
