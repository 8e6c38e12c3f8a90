#include "troika/engine/tuner.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "troika/base/median.h"

namespace troika::engine {
namespace {

constexpr int kFirstRuns = 3;
// A challenger that is slower than this many times the best in its first runs is not worth pairs.
constexpr double kHopeless = 1.25;

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
    RETURN_IF_ERROR(first_runs(choices));
    begin_ = clock_.now();  // compiling is no measuring
    const TuneChoice* best = best_of(choices, true);
    if (best == nullptr) best = best_of(choices, false);
    TuneChoice chosen = *best;
    TunedPass tuned;
    tuned.best_single = best->single ? best->name : "";
    const TuneChoice single = *best;
    RETURN_IF_ERROR(challenge(choices, chosen));
    if (!chosen.single) RETURN_IF_ERROR(move_shares(chosen));
    return finish(std::move(tuned), single, std::move(chosen));
  }

 private:
  // Of every choice some, in turn, so that a drift of the machine falls on all.
  Status first_runs(std::span<const TuneChoice> choices) {
    first_.assign(choices.size(), 0);
    std::vector<std::vector<double>> times(choices.size());
    for (int i = 0; i < kFirstRuns; ++i) {
      for (size_t c = 0; c < choices.size(); ++c) {
        ASSIGN_OR_RETURN(const double us, timed(choices[c].bucket));
        times[c].push_back(us);
      }
    }
    for (size_t c = 0; c < choices.size(); ++c) first_[c] = median(times[c]);
    return {};
  }

  Result<double> timed(const plan::RowsBucket& bucket) {
    ASSIGN_OR_RETURN(const double us, measure_(bucket));
    if (!(std::isfinite(us) && us > 0)) {
      return make_error(ErrorCode::kInvalidData, "a measured pass took {} us", us);
    }
    latest_us_ = us;
    return us;
  }

  const TuneChoice* best_of(std::span<const TuneChoice> choices, bool single) const {
    const TuneChoice* best = nullptr;
    double least = HUGE_VAL;
    for (size_t c = 0; c < choices.size(); ++c) {
      if (choices[c].single != single || first_[c] >= least) continue;
      least = first_[c];
      best = &choices[c];
    }
    return best;
  }

  // Those that share, fastest in their first runs first, each against the best so far.
  Status challenge(std::span<const TuneChoice> choices, TuneChoice& chosen) {
    std::vector<size_t> order;
    for (size_t c = 0; c < choices.size(); ++c) {
      if (!choices[c].single) order.push_back(c);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return first_[a] < first_[b]; });
    const double least = *std::min_element(first_.begin(), first_.end());
    for (const size_t c : order) {
      if (same(choices[c].bucket, chosen.bucket)) continue;
      if (tried_ > 0 && (spent() || first_[c] > kHopeless * least)) break;
      ASSIGN_OR_RETURN(const bool taken, against(chosen, choices[c]));
      if (taken) chosen = choices[c];
    }
    return {};
  }

  // Hill climbing over the shares, on the devices.
  Status move_shares(TuneChoice& chosen) {
    for (const double step : options_.share_steps) {
      for (bool moved = true; moved && !spent();) {
        moved = false;
        for (const std::string& device : devices_of(chosen.bucket)) {
          TuneChoice other = chosen;
          other.bucket = with_moved_shares(chosen.bucket, device, step);
          if (same(other.bucket, chosen.bucket) || spent()) continue;
          ASSIGN_OR_RETURN(moved, against(chosen, other));
          if (!moved) continue;
          ++moves_;
          chosen = std::move(other);
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

  Result<bool> against(const TuneChoice& incumbent, const TuneChoice& challenger) {
    planner::ConfirmOptions confirm;
    confirm.least_pairs = options_.least_pairs;
    const double left_us = std::max(0.0, to_us(options_.budget - (clock_.now() - begin_))) / 2;
    const double fitting = left_us / std::max(2 * latest_us_, 1.0);
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

  bool spent() const { return clock_.now() - begin_ > options_.budget; }

  // What is told is measured now, in turns.
  Result<TunedPass> finish(TunedPass tuned, const TuneChoice& single, TuneChoice chosen) {
    std::vector<double> alone, shared;
    for (int i = 0; i < kFirstRuns; ++i) {
      ASSIGN_OR_RETURN(const double a, timed(single.bucket));
      alone.push_back(a);
      if (same(single.bucket, chosen.bucket)) continue;
      ASSIGN_OR_RETURN(const double b, timed(chosen.bucket));
      shared.push_back(b);
    }
    tuned.best_single_us = single.single ? median(alone) : 0;
    tuned.measured_us = shared.empty() ? median(alone) : median(shared);
    tuned.refused = chosen.single && tried_ > 0;
    if (tuned.refused) {
      tuned.reason = fmt::format("co-execution is refused: {}", refused_);
    } else if (chosen.single) {
      tuned.reason = chosen.name + ": nothing else is planned";
    } else {
      tuned.reason = fmt::format(
          "measured {:.2f} ms; {} {:.2f} ms in the same turns{}", tuned.measured_us * 1e-3,
          single.single ? single.name : "no device alone", median(alone) * 1e-3,
          moves_ > 0 ? fmt::format("; shares moved {} times", moves_) : "");
    }
    tuned.chosen = std::move(chosen);
    return tuned;
  }

  const planner::MeasurePass& measure_;
  const TuneOptions& options_;
  const Clock& clock_;
  TimePoint begin_;
  std::vector<double> first_;  // by choice, us
  double latest_us_ = 0;
  int tried_ = 0;
  int moves_ = 0;
  std::string refused_;  // why the first one, the fastest by its first runs, was not taken
};

}  // namespace

std::vector<TuneChoice> choices_of(const planner::PassPlan& pass, size_t most) {
  std::vector<TuneChoice> choices = {{pass.name, pass.bucket, is_single(pass.name)}};
  size_t shared = choices[0].single ? 0 : 1;
  for (const planner::PassAlternative& other : pass.alternatives) {
    if (!std::isfinite(other.predicted_us)) continue;
    const bool single = is_single(other.name);
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
