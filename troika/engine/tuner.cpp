#include "troika/engine/tuner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "troika/base/median.h"

namespace troika::engine {
namespace {

constexpr int kLastRuns = 3;
// A challenger that is slower than this many times the best in its first runs is not worth pairs.
constexpr double kHopeless = 1.25;
// Nor is a device alone worth compiling for that should be so many times slower than another.
constexpr double kHopelessAlone = 2;

bool is_single(const std::string& name) { return name.ends_with(" alone"); }

bool same(const plan::RowsBucket& a, const plan::RowsBucket& b) {
  plan::Plan one, other;
  one.buckets = {a};
  other.buckets = {b};
  return plan::to_json(one) == plan::to_json(other);
}

bool is_cut(const plan::RowsBucket& bucket) {
  return std::any_of(bucket.placements.begin(), bucket.placements.end(),
                     [](const plan::Placement& placement) { return placement.parts.size() > 1; });
}

// One pass's tuning.
class Tuning {
 public:
  Tuning(const planner::MeasurePass& measure, const TuneOptions& options, const Clock& clock)
      : measure_(measure), options_(options), clock_(clock), begin_(clock.now()) {}

  Result<TunedPass> run(std::span<const TuneChoice> choices) {
    const Status status = explore(choices);
    if (!status && status.error().code != ErrorCode::kCancelled) {
      return tl::unexpected<Error>(status.error());
    }
    return outcome(choices.front());
  }

 private:
  Status explore(std::span<const TuneChoice> choices) {
    RETURN_IF_ERROR(first_runs(choices));
    const bool any_single = std::any_of(choices.begin(), choices.end(),
                                        [](const TuneChoice& choice) { return choice.single; });
    const TuneChoice* best = nullptr;
    for (const TuneChoice& choice : choices) {
      if (choice.single != any_single) continue;
      if (best == nullptr || least_of(choice) < least_of(*best)) best = &choice;
    }
    base_ = chosen_ = *best;
    RETURN_IF_ERROR(challenge(choices));
    if (!chosen_->single) RETURN_IF_ERROR(move_shares());
    return last_runs();
  }

  // Every single device, and again those that may be the best; then the others, as long as there is
  // time for more than one.
  Status first_runs(std::span<const TuneChoice> choices) {
    double least = HUGE_VAL;
    for (const TuneChoice& choice : choices) {
      if (!choice.single) continue;
      ASSIGN_OR_RETURN(const double us, timed(choice.bucket));
      least = std::min(least, us);
    }
    for (const TuneChoice& choice : choices) {
      if (!choice.single || least_of(choice) > kHopeless * least) continue;
      RETURN_IF_ERROR(timed(choice.bucket));
    }
    bool first = true;
    for (const TuneChoice& choice : choices) {
      if (choice.single) continue;
      if (!first && !has_time_for_new()) break;
      RETURN_IF_ERROR(timed(choice.bucket));
      first = false;
    }
    return {};
  }

  Result<double> timed(const plan::RowsBucket& bucket) {
    const TimePoint before = clock_.now();
    ASSIGN_OR_RETURN(const double us, measure_(bucket));
    if (!(std::isfinite(us) && us > 0)) {
      return make_error(ErrorCode::kInvalidData, "a measured pass took {} us", us);
    }
    std::vector<double>& times = times_[key(bucket)];
    const Duration took = clock_.now() - before;
    (times.empty() ? latest_new_ : latest_) = took;
    times.push_back(us);
    return us;
  }

  static std::string key(const plan::RowsBucket& bucket) {
    plan::Plan plan;
    plan.buckets = {bucket};
    return plan::to_json(plan);
  }
  double least_of(const TuneChoice& choice) const {
    const auto known = times_.find(key(choice.bucket));
    if (known == times_.end()) return HUGE_VAL;
    return *std::min_element(known->second.begin(), known->second.end());
  }
  double median_of(const TuneChoice& choice) const {
    const auto known = times_.find(key(choice.bucket));
    return known == times_.end() ? 0 : median(known->second);
  }

  // Those that share, fastest in their first runs first, each against the best so far.
  Status challenge(std::span<const TuneChoice> choices) {
    std::vector<const TuneChoice*> order;
    for (const TuneChoice& choice : choices) {
      if (!choice.single && std::isfinite(least_of(choice))) order.push_back(&choice);
    }
    std::stable_sort(order.begin(), order.end(), [&](const TuneChoice* a, const TuneChoice* b) {
      return least_of(*a) < least_of(*b);
    });
    for (const TuneChoice* one : order) {
      if (same(one->bucket, chosen_->bucket)) continue;
      if (tried_ > 0 && left() <= Duration::zero()) break;
      // One run may have been disturbed.
      if (least_of(*one) > kHopeless * least_of(*chosen_)) RETURN_IF_ERROR(timed(one->bucket));
      if (least_of(*one) > kHopeless * least_of(*chosen_)) {
        if (tried_++ == 0) {
          refused_ = fmt::format("{} takes {:.2f} ms, {} {:.2f} ms", one->name,
                                 least_of(*one) * 1e-3, chosen_->name, least_of(*chosen_) * 1e-3);
        }
        break;
      }
      ASSIGN_OR_RETURN(const bool taken, against(*one));
      if (taken) chosen_ = *one;
      decided_ = true;
    }
    decided_ = true;
    return {};
  }

  // Hill climbing over the shares, on the devices.
  Status move_shares() {
    for (const double step : options_.share_steps) {
      for (bool moved = true; moved;) {
        moved = false;
        for (const std::string& device : devices_of(chosen_->bucket)) {
          TuneChoice other = *chosen_;
          other.bucket = with_moved_shares(chosen_->bucket, device, step);
          if (same(other.bucket, chosen_->bucket)) continue;
          if (!has_time_for_new()) return {};
          ASSIGN_OR_RETURN(moved, against(other));
          if (!moved) continue;
          ++moves_;
          chosen_ = std::move(other);
          break;
        }
      }
    }
    return {};
  }

  static std::vector<std::string> devices_of(const plan::RowsBucket& bucket) {
    std::vector<std::string> devices;
    for (const plan::Placement& placement : bucket.placements) {
      if (placement.parts.size() < 2) continue;
      for (const plan::Part& part : placement.parts) {
        if (std::find(devices.begin(), devices.end(), part.device) == devices.end()) {
          devices.push_back(part.device);
        }
      }
    }
    return devices;
  }

  // Whether `challenger` is faster than what is chosen by now.
  Result<bool> against(const TuneChoice& challenger) {
    const TuneChoice& incumbent = *chosen_;
    planner::ConfirmOptions confirm;
    confirm.least_pairs = options_.least_pairs;
    const double fitting = to_us(left()) / 2 / std::max(2 * to_us(latest_), 1.0);
    confirm.most_pairs = static_cast<int32_t>(
        std::clamp(fitting, double{1} * options_.least_pairs, double{1} * options_.most_pairs));
    // To leave one device alone, all tries together have the chance that was given.
    confirm.false_accept = incumbent.single
                               ? std::max(1e-4, options_.false_accept / std::pow(2.0, 1 + tried_))
                               : options_.false_accept;
    ++tried_;
    ASSIGN_OR_RETURN(planner::Confirmation one,
                     planner::confirm(
                         incumbent.bucket, challenger.bucket,
                         [&](const plan::RowsBucket& b) { return timed(b); }, confirm));
    if (refused_.empty()) refused_ = challenger.name + " is " + one.reason;
    return one.accepted;
  }

  Duration left() const {
    return std::max(Duration::zero(), options_.budget - (clock_.now() - begin_));
  }
  // Compiled, and measured in as many pairs as it takes at least.
  bool has_time_for_new() const {
    return left() > latest_new_ + latest_ * (2 * options_.least_pairs);
  }

  // What is told is measured now, in turns, if there is time.
  Status last_runs() {
    if (same(base_->bucket, chosen_->bucket) || left() < latest_ * (2 * kLastRuns)) return {};
    std::vector<double> base, chosen;
    for (int i = 0; i < kLastRuns; ++i) {
      ASSIGN_OR_RETURN(const double base_us, timed(base_->bucket));
      ASSIGN_OR_RETURN(const double chosen_us, timed(chosen_->bucket));
      base.push_back(base_us);
      chosen.push_back(chosen_us);
    }
    times_[key(base_->bucket)] = std::move(base);
    times_[key(chosen_->bucket)] = std::move(chosen);
    return {};
  }

  TunedPass outcome(const TuneChoice& planned) const {
    TunedPass tuned;
    if (!decided_) {
      tuned.chosen = planned;
      tuned.reason = planned.name + ", not confirmed: the measuring was ended before";
      return tuned;
    }
    tuned.confirmed = true;
    tuned.chosen = *chosen_;
    tuned.best_single = base_->single ? base_->name : "";
    tuned.best_single_us = base_->single ? median_of(*base_) : 0;
    tuned.measured_us = median_of(*chosen_);
    tuned.refused = chosen_->single && tried_ > 0;
    if (tuned.refused) {
      tuned.reason = "co-execution is refused: " + refused_;
    } else if (chosen_->single) {
      tuned.reason = chosen_->name + ": nothing else is planned";
    } else {
      tuned.reason = fmt::format(
          "measured {:.2f} ms; {} {:.2f} ms in the same turns{}", tuned.measured_us * 1e-3,
          base_->single ? base_->name : "no device alone", median_of(*base_) * 1e-3,
          moves_ > 0 ? fmt::format("; shares moved {} times", moves_) : "");
    }
    return tuned;
  }

  const planner::MeasurePass& measure_;
  const TuneOptions& options_;
  const Clock& clock_;
  TimePoint begin_;
  std::map<std::string, std::vector<double>> times_;  // by bucket, as JSON, us
  std::optional<TuneChoice> base_;    // the best single device; the best of all if there is none
  std::optional<TuneChoice> chosen_;  // by now
  // That measuring a bucket took lately: a new one, with compiling, and one that was there.
  Duration latest_new_{};
  Duration latest_{};
  bool decided_ = false;  // a plan that shares was held against it, or there is none
  int tried_ = 0;
  int moves_ = 0;
  std::string refused_;  // why the first one, the fastest by its first runs, was not taken
};

}  // namespace

std::vector<TuneChoice> choices_of(const planner::PassPlan& pass, size_t most) {
  const double best_alone = pass.best_single.empty() ? HUGE_VAL : pass.best_single_us;
  std::vector<TuneChoice> choices = {{pass.name, pass.bucket, is_single(pass.name)}};
  size_t shared = choices[0].single ? 0 : 1;
  for (const planner::PassAlternative& other : pass.alternatives) {
    if (!std::isfinite(other.predicted_us)) continue;
    const bool single = is_single(other.name);
    if (single && other.predicted_us > kHopelessAlone * best_alone) continue;
    const bool known = std::any_of(choices.begin(), choices.end(), [&](const TuneChoice& one) {
      return same(one.bucket, other.bucket);
    });
    if (known || (!single && (shared >= most || !is_cut(other.bucket)))) continue;
    if (!single) ++shared;
    choices.push_back({other.name, other.bucket, single});
  }
  return choices;
}

plan::RowsBucket with_moved_shares(const plan::RowsBucket& bucket, const std::string& device,
                                   double step) {
  plan::RowsBucket moved = bucket;
  for (plan::Placement& placement : moved.placements) {
    if (placement.parts.size() < 2) continue;
    double sum = 0;
    const plan::Part* own = nullptr;
    for (const plan::Part& part : placement.parts) {
      sum += part.share;
      if (part.device == device) own = &part;
    }
    if (own == nullptr || sum <= 0) continue;
    const double before = own->share / sum;
    const double after = std::clamp(before + step, 0.0, 1.0);
    if (before >= 1 || after >= 1) continue;
    for (plan::Part& part : placement.parts) {
      part.share = part.device == device ? after : part.share / sum * (1 - after) / (1 - before);
    }
  }
  return moved;
}

Result<TunedPass> tune_pass(std::span<const TuneChoice> choices,
                            const planner::MeasurePass& measure, const TuneOptions& options,
                            const Clock& clock) {
  if (choices.empty()) {
    return make_error(ErrorCode::kInvalidArgument, "there is nothing to tune");
  }
  return Tuning(measure, options, clock).run(choices);
}

}  // namespace troika::engine
