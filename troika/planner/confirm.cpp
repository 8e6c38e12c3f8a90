#include "troika/planner/confirm.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troika::planner {
namespace {

// The value that a normal variable exceeds with this chance, by bisection.
double normal_quantile(double chance) {
  double low = 0;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > chance ? low : high) = middle;
  }
  return low;
}

// The same of Student's distribution, by the first terms of its expansion in 1 / freedom (Fisher
// and Cornish, 1960): within 1 % for five degrees of freedom and chances above 1e-4.
double student_quantile(double chance, double freedom) {
  const double z = normal_quantile(chance);
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

int32_t looks(const ConfirmOptions& options) {
  int32_t count = 1;
  for (int32_t pairs = options.least_pairs; pairs < options.most_pairs; pairs *= 2) ++count;
  return count;
}

// Mean and its uncertainty of logarithms of incumbent / challenger.
struct Bounds {
  double mean = 0;
  double low = 0;
  double high = 0;
};
Bounds bounds_of(const std::vector<double>& logs, double chance) {
  const auto n = static_cast<double>(logs.size());
  Bounds bounds;
  for (const double one : logs) bounds.mean += one / n;
  double squares = 0;
  for (const double one : logs) squares += (one - bounds.mean) * (one - bounds.mean);
  const double error = std::sqrt(squares / (n - 1) / n) * student_quantile(chance, n - 1);
  bounds.low = bounds.mean - error;
  bounds.high = bounds.mean + error;
  return bounds;
}

double gain_of(double log_ratio) { return 1 - std::exp(-log_ratio); }

Result<double> run(const MeasurePass& measure, const plan::RowsBucket& bucket) {
  ASSIGN_OR_RETURN(const double us, measure(bucket));
  if (std::isfinite(us) && us > 0) return us;
  return make_error(ErrorCode::kInvalidData, "a measured pass took {} us", us);
}

}  // namespace

Result<Confirmation> confirm(const plan::RowsBucket& incumbent, const plan::RowsBucket& challenger,
                             const MeasurePass& measure, const ConfirmOptions& options) {
  if (options.least_pairs < 3 || options.most_pairs < options.least_pairs ||
      !(options.false_accept > 0 && options.false_accept < 0.5)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "confirming by {} to {} pairs with a chance of {}: at least 3 pairs and a "
                      "chance between 0 and 0.5 are needed",
                      options.least_pairs, options.most_pairs, options.false_accept);
  }
  const double chance = options.false_accept / looks(options);
  const double needed = -std::log(1 - options.least_gain);
  std::vector<double> logs;
  Confirmation result;
  for (int32_t pairs = options.least_pairs;; pairs = std::min(2 * pairs, options.most_pairs)) {
    while (static_cast<int32_t>(logs.size()) < pairs) {
      const bool incumbent_first = logs.size() % 2 == 0;
      ASSIGN_OR_RETURN(const double first, run(measure, incumbent_first ? incumbent : challenger));
      ASSIGN_OR_RETURN(const double second, run(measure, incumbent_first ? challenger : incumbent));
      logs.push_back(std::log(incumbent_first ? first / second : second / first));
    }
    const Bounds bounds = bounds_of(logs, chance);
    result = {bounds.low > needed,  pairs, gain_of(bounds.mean), gain_of(bounds.low),
              gain_of(bounds.high), {}};
    if (result.accepted || bounds.high <= needed || pairs == options.most_pairs) break;
  }
  result.reason = fmt::format("{} after {} pairs: it gains {:.1f} %, between {:.1f} and {:.1f}",
                              result.accepted ? "taken" : "refused", result.pairs,
                              100 * result.gain, 100 * result.least_gain, 100 * result.most_gain);
  return result;
}

Result<Tuned> tune_measured(const plan::RowsBucket& incumbent,
                            std::span<const plan::RowsBucket> challengers,
                            const MeasurePass& measure, const ConfirmOptions& options) {
  Tuned tuned;
  ConfirmOptions each = options;
  each.false_accept /= static_cast<double>(std::max<size_t>(1, challengers.size()));
  const plan::RowsBucket* best = &incumbent;
  for (size_t i = 0; i < challengers.size(); ++i) {
    ASSIGN_OR_RETURN(Confirmation one, confirm(*best, challengers[i], measure, each));
    if (one.accepted) {
      best = &challengers[i];
      tuned.winner = i + 1;
    }
    tuned.confirmations.push_back(std::move(one));
  }
  return tuned;
}

}  // namespace troika::planner
