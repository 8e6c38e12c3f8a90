#include "troika/planner/hill_climb.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
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

// Of the edits of a round that gain nothing, so many of the least bad are tried together with
// another one.
constexpr size_t kFirstOfTwo = 6;
// So many are tried before a round is ended early.
constexpr size_t kLeastTried = 24;

class Climber {
 public:
  Climber(const PassSpace& space, const Strategy& strategy, PassEvaluator& evaluator,
          const ClimbLimits& limits)
      : space_(space),
        strategy_(strategy),
        evaluator_(evaluator),
        limits_(limits),
        solved_(space, strategy),
        end_(evaluator.evaluations() + limits.evaluations) {}

  Climb run(const plan::RowsBucket& start) {
    climb_.bucket = start;
    climb_.score = evaluator_.score(start);
    climb_.us = evaluator_.us();
    while (std::isfinite(climb_.score) && may_go_on() && climb_.edits < limits_.edits) {
      if (!step()) break;
    }
    return std::move(climb_);
  }

 private:
  struct Tried {
    Edit edit;
    double score = 0;
    double us = 0;
    double mj = 0;
  };

  bool may_go_on() const { return evaluator_.may_go_on() && evaluator_.evaluations() < end_; }

  // Edits of a bucket, the best first; only those that were tried within the limits, and until one
  // leads below `enough`.
  std::vector<Tried> round(const plan::RowsBucket& bucket, double enough) {
    // The evaluator shows the trace of the bucket that it scored last.
    evaluator_.score(bucket);
    std::vector<Tried> tried;
    double best = HUGE_VAL;
    for (Edit& edit : edits_of(space_, strategy_, bucket, evaluator_, solved_.of(bucket))) {
      if (!may_go_on() || (best < enough && tried.size() >= kLeastTried)) break;
      const double score = evaluator_.score(edit.bucket);
      if (!std::isfinite(score)) continue;
      best = std::min(best, score);
      tried.push_back({std::move(edit), score, evaluator_.us(), evaluator_.mj()});
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const Tried& a, const Tried& b) { return a.score < b.score; });
    return tried;
  }

  bool step() {
    const double part = strategy_.accept_part * climb_.score;
    // The least time that must be gained is none of energy.
    const bool by_time = space_.request().objective.kind == Objective::Kind::kTime;
    const double most = climb_.score - (by_time ? std::max(strategy_.accept_us, part) : part);
    const double enough =
        strategy_.enough_gain > 0 ? climb_.score * (1 - strategy_.enough_gain) : -HUGE_VAL;
    std::vector<Tried> tried = round(climb_.bucket, enough);
    if (tried.empty()) return false;
    if (tried.front().score < most) {
      accept(std::move(tried.front()), 1);
      return true;
    }
    if (!strategy_.all_edits || climb_.edits + 2 > limits_.edits) return false;
    return step_by_two(tried, most);
  }

  bool step_by_two(const std::vector<Tried>& tried, double most) {
    std::optional<Tried> best;
    for (size_t i = 0; i < std::min(kFirstOfTwo, tried.size()) && may_go_on(); ++i) {
      std::vector<Tried> second = round(tried[i].edit.bucket, -HUGE_VAL);
      if (second.empty() || second.front().score >= (best ? best->score : most)) continue;
      best = std::move(second.front());
      best->edit.name = tried[i].edit.name + " and " + best->edit.name;
    }
    if (!best) return false;
    accept(std::move(*best), 2);
    return true;
  }

  void accept(Tried one, int64_t edits) {
    climb_.bucket = std::move(one.edit.bucket);
    climb_.score = one.score;
    climb_.us = one.us;
    climb_.edits += edits;
    climb_.steps.push_back({std::move(one.edit.name), one.us, one.mj});
  }

  const PassSpace& space_;
  const Strategy& strategy_;
  PassEvaluator& evaluator_;
  const ClimbLimits& limits_;
  Solved solved_;
  int64_t end_;
  Climb climb_;
};

}  // namespace

Climb climb(const PassSpace& space, const Strategy& strategy, const plan::RowsBucket& start,
            PassEvaluator& evaluator, const ClimbLimits& limits) {
  return Climber(space, strategy, evaluator, limits).run(start);
}

}  // namespace troika::planner
