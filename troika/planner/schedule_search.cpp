#include "troika/planner/schedule_search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "troika/plan/steps.h"

namespace troika::planner {
namespace {

// The most promising ones that are tuned.
constexpr size_t kTuned = 3;
// The part of the budget that may be spent before tuning.
constexpr double kFirstPart = 0.4;

// With orders by products, those that every candidate is tried with, and how many candidates with
// all of them.
constexpr size_t kFirstOrders = 3;
constexpr size_t kRefined = 8;

struct Order {
  plan::OrderRule rule = plan::OrderRule::kStages;
  int64_t window = 0;
  int32_t lag = 0;
};

// All that a strategy allows; by products, in the middle of its lags, comes first.
std::vector<Order> orders_of(const Strategy& strategy) {
  std::vector<Order> orders;
  for (const int64_t window : strategy.windows) {
    orders.push_back({plan::OrderRule::kStages, window, 0});
    orders.push_back({plan::OrderRule::kWavefront, window, 0});
    for (const int32_t lag : strategy.lags) {
      orders.push_back({plan::OrderRule::kProducts, window, lag});
    }
  }
  if (strategy.lags.empty()) return orders;
  const auto first = orders.begin() + 2 + static_cast<std::ptrdiff_t>(strategy.lags.size() / 2);
  std::rotate(orders.begin(), first, first + 1);
  return orders;
}

struct Scored {
  Candidate candidate;
  double score = HUGE_VAL;
};

int64_t rounded_up(int64_t rows, int64_t quantum) {
  return (rows + quantum - 1) / quantum * quantum;
}

// Equal sizes, and sizes that fall by the same amount down to about a third of the first.
std::vector<std::vector<int64_t>> chunk_sizes(int64_t rows, int64_t count, int64_t quantum) {
  const int64_t equal = rounded_up((rows + count - 1) / count, quantum);
  std::vector<std::vector<int64_t>> all;
  if (equal * (count - 1) >= rows) return all;  // a chunk would have no rows
  all.push_back({equal});
  std::vector<int64_t> falling;
  int64_t left = rows;
  for (int64_t c = 0; c + 1 < count; ++c) {
    const double weight = 1.5 - static_cast<double>(c) / static_cast<double>(count - 1);
    const auto size =
        static_cast<int64_t>(weight * static_cast<double>(rows) / static_cast<double>(count));
    falling.push_back(std::max(quantum, size / quantum * quantum));
    left -= falling.back();
  }
  falling.push_back(left);
  if (left > 0 && falling.front() != equal) all.push_back(std::move(falling));
  return all;
}

class Search {
 public:
  Search(const PassSpace& space, const Strategy& strategy, PassEvaluator& evaluator)
      : space_(space),
        strategy_(strategy),
        evaluator_(evaluator),
        first_part_(static_cast<int64_t>(kFirstPart *
                                         static_cast<double>(space.request().budget.evaluations))),
        orders_(orders_of(strategy)) {}

  Result<Schedules> run() {
    const int64_t rows = space_.request().rows;
    ASSIGN_OR_RETURN(std::vector<Candidate> whole, strategy_candidates(space_, strategy_, rows));
    for (Candidate& candidate : whole) consider(std::move(candidate));
    // What takes least energy may be near one device alone.
    if (space_.request().objective.needs_power() && strategy_.all_edits) {
      for (Candidate& candidate : single_candidates(space_)) consider(std::move(candidate));
    }
    for (int64_t count = 2; count <= strategy_.most_chunks_for(rows); ++count) {
      for (auto& sizes : chunk_sizes(rows, count, strategy_.chunk_quantum)) {
        // By products equal chunks fit together; edits find other sizes where those gain.
        if (!strategy_.lags.empty() && sizes.size() > 1) continue;
        RETURN_IF_ERROR(chunked(count, std::move(sizes)));
      }
    }
    refine();
    sort();
    Schedules found;
    if (strategy_.tune) tune(found);
    for (Scored& one : scored_) {
      if (std::isfinite(one.score) || found.candidates.empty()) {
        found.candidates.push_back(std::move(one.candidate));
      }
    }
    return found;
  }

 private:
  void consider(Candidate candidate) {
    const double score = evaluator_.score(candidate.bucket);
    // Of each name, which is a way to cut, the best schedule.
    for (Scored& known : scored_) {
      if (known.candidate.name != candidate.name) continue;
      if (score < known.score) known = {std::move(candidate), score};
      return;
    }
    scored_.push_back({std::move(candidate), score});
  }

  Status chunked(int64_t count, std::vector<int64_t> sizes) {
    if (evaluator_.evaluations() > first_part_) return {};
    ASSIGN_OR_RETURN(const std::vector<Candidate> bases,
                     strategy_candidates(space_, strategy_, sizes.front()));
    for (const Candidate& base : bases) {
      Candidate candidate = base;
      candidate.name = fmt::format("{}, {} chunks", base.name, count);
      candidate.single = false;
      candidate.bucket.chunks = sizes;
      for (size_t i = 0; i < (strategy_.lags.empty() ? orders_.size() : kFirstOrders); ++i) {
        try_order(candidate, orders_[i], count);
      }
    }
    return {};
  }

  void try_order(Candidate candidate, const Order& order, int64_t chunks) {
    if (order.window >= chunks) return;
    candidate.bucket.order_rule = order.rule;
    candidate.bucket.in_flight = order.window;
    candidate.bucket.lag = order.lag;
    consider(std::move(candidate));
  }

  // The orders that were not tried at first, of what has shown to be good.
  void refine() {
    if (strategy_.lags.empty()) return;
    sort();
    std::vector<Candidate> promising;
    for (const Scored& one : scored_) {
      if (promising.size() == kRefined || !std::isfinite(one.score)) break;
      if (!one.candidate.bucket.chunks.empty()) promising.push_back(one.candidate);
    }
    for (const Candidate& candidate : promising) {
      const int32_t chunks = plan::chunk_count(candidate.bucket, space_.request().rows);
      for (size_t i = kFirstOrders; i < orders_.size(); ++i) {
        if (evaluator_.evaluations() > first_part_) return;
        try_order(candidate, orders_[i], chunks);
      }
    }
  }

  void sort() {
    std::stable_sort(scored_.begin(), scored_.end(),
                     [](const Scored& a, const Scored& b) { return a.score < b.score; });
  }

  // The best ones; of those that take the same, which are the same but for their names, one.
  std::vector<size_t> starts_of_tuning() const {
    std::vector<size_t> starts;
    for (size_t i = 0; i < scored_.size() && starts.size() < kTuned; ++i) {
      if (!std::isfinite(scored_[i].score)) break;
      const bool same = !starts.empty() && scored_[i].score == scored_[starts.back()].score;
      if (!same) starts.push_back(i);
    }
    return starts;
  }

  void tune(Schedules& found) {
    std::vector<Scored> tuned;
    const std::vector<size_t> starts = starts_of_tuning();
    const size_t count = starts.size();
    double best = HUGE_VAL;
    for (size_t n = 0; n < count; ++n) {
      const size_t i = starts[n];
      ClimbLimits limits;
      const int64_t left = space_.request().budget.evaluations - evaluator_.evaluations();
      limits.evaluations = left / static_cast<int64_t>(count - n);
      Climb climbed = climb(space_, strategy_, scored_[i].candidate.bucket, evaluator_, limits);
      if (climbed.steps.empty()) continue;
      if (climbed.score < best) {
        best = climbed.score;
        found.steps = climbed.steps;
      }
      Candidate candidate = scored_[i].candidate;
      candidate.name += ", tuned";
      candidate.single = false;
      candidate.bucket = std::move(climbed.bucket);
      tuned.push_back({std::move(candidate), climbed.score});
    }
    for (Scored& one : tuned) scored_.push_back(std::move(one));
    sort();
  }

  const PassSpace& space_;
  const Strategy& strategy_;
  PassEvaluator& evaluator_;
  int64_t first_part_;
  std::vector<Order> orders_;
  std::vector<Scored> scored_;
};

}  // namespace

Result<Schedules> search_schedules(const PassSpace& space, const Strategy& strategy,
                                   PassEvaluator& evaluator) {
  return Search(space, strategy, evaluator).run();
}

}  // namespace troika::planner
