#include "troika/planner/hill_climb.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace troika::planner {
namespace {

// What the operator solver makes of the first chunk's rows.
class Solved {
 public:
  Solved(const PassSpace& space, const Strategy& strategy) : space_(space), strategy_(strategy) {}

  std::span<const Candidate> of(const plan::RowsBucket& bucket) {
    if (!strategy_.all_edits) return {};
    const int64_t rows = bucket.chunks.empty()
                             ? space_.request().rows
                             : std::min(bucket.chunks.front(), space_.request().rows);
    const auto [known, is_new] = by_rows_.try_emplace(rows);
    if (is_new) {
      auto solved = strategy_candidates(space_, strategy_, rows);
      if (solved) known->second = std::move(*solved);
    }
    return known->second;
  }

 private:
  const PassSpace& space_;
  const Strategy& strategy_;
  std::map<int64_t, std::vector<Candidate>> by_rows_;
};

}  // namespace

Climb climb(const PassSpace& space, const Strategy& strategy, const plan::RowsBucket& start,
            PassEvaluator& evaluator, const ClimbLimits& limits) {
  const int64_t end = evaluator.evaluations() + limits.evaluations;
  const auto may_go_on = [&] { return evaluator.may_go_on() && evaluator.evaluations() < end; };
  Solved solved(space, strategy);
  Climb climb{start, evaluator.score(start), {}};
  while (std::isfinite(climb.us) && may_go_on() &&
         static_cast<int64_t>(climb.steps.size()) < limits.edits) {
    // The evaluator shows the trace of the bucket that it scored last.
    evaluator.score(climb.bucket);
    std::vector<Edit> edits =
        edits_of(space, strategy, climb.bucket, evaluator, solved.of(climb.bucket));
    const double least = std::max(strategy.accept_us, strategy.accept_part * climb.us);
    double best_us = climb.us - least;
    Edit* best = nullptr;
    for (Edit& edit : edits) {
      if (!may_go_on()) break;
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
