// Tuner: which of several ways to compute a pass is fastest on the devices themselves, by
// alternating runs. The cost model proposes, measuring decides.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/planner/confirm.h"
#include "troika/planner/model_plan.h"

namespace troika::engine {

struct TuneChoice {
  std::string name;  // "paired", "cpu@0 alone"
  plan::RowsBucket bucket;
  bool single = false;  // one device alone
};

struct TuneOptions {
  // Nothing more is begun that does not end within it, compiling included; only that some plan that
  // shares is held against the best single device may take longer.
  Duration budget = std::chrono::seconds(36);
  double false_accept = 0.02;  // chance to leave the best single device for what is no faster
  // In turns: shares are moved by so much of the whole, while that pays.
  std::vector<double> share_steps = {0.08, 0.03};
  int32_t least_pairs = 6;
  int32_t most_pairs = 48;
};

struct TunedPass {
  TuneChoice chosen;
  // False: the measuring was ended before the best single device was known, and `chosen` is the
  // first choice as it came.
  bool confirmed = false;
  double measured_us = 0;  // of the chosen one, the median of its runs
  std::string best_single;
  double best_single_us = 0;  // the same of the best single device, in the same turns
  bool refused = false;       // co-execution was tried, and one device alone is as fast
  std::string reason;         // one sentence
};

// The planned bucket, the fastest alternatives by prediction (at most `most`) and every device
// alone but those that are predicted to take twice as long as the best of them.
std::vector<TuneChoice> choices_of(const planner::PassPlan& pass, size_t most);

// Each cut product's share of part `part` more by `step` of the whole, the others less in
// proportion; shares stay within 0 and 1.
plan::RowsBucket with_moved_shares(const plan::RowsBucket& bucket, const std::string& device,
                                   double step);

// The single devices are measured first. Never slower than the best of them in the same run, but
// for the chance of `false_accept`. `measure` takes a bucket and tells its time, us; its kCancelled
// ends the tuning with what is known by then. kInvalidArgument without a choice; the measurement's
// other errors.
Result<TunedPass> tune_pass(std::span<const TuneChoice> choices,
                            const planner::MeasurePass& measure, const TuneOptions& options,
                            const Clock& clock = system_clock());

}  // namespace troika::engine
