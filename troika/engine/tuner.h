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
  Duration budget = std::chrono::seconds(8);  // no more is tried once it is spent
  double false_accept = 0.02;  // chance to leave the best single device for what is no faster
  // In turns: shares are moved by so much of the whole, while that pays.
  std::vector<double> share_steps = {0.08, 0.03};
  int32_t least_pairs = 6;
  int32_t most_pairs = 48;
};

struct TunedPass {
  TuneChoice chosen;
  double measured_us = 0;  // of the chosen one, the median of its runs
  std::string best_single;
  double best_single_us = 0;  // the same of the best single device, in the same turns
  bool refused = false;       // co-execution was tried, and one device alone is as fast
  std::string reason;         // one sentence
};

// The planned bucket, the fastest alternatives by prediction (at most `most`) and every device
// alone.
std::vector<TuneChoice> choices_of(const planner::PassPlan& pass, size_t most);

// Each cut product's share of part `part` more by `step` of the whole, the others less in
// proportion; shares stay within 0 and 1.
plan::RowsBucket with_moved_shares(const plan::RowsBucket& bucket, const std::string& device,
                                   double step);

// Never slower than the best single device measured in the same run, but for the chance of
// `false_accept`. `measure` takes a bucket and tells its time, us. kInvalidArgument without a
// choice; the measurement's errors.
Result<TunedPass> tune_pass(std::span<const TuneChoice> choices,
                            const planner::MeasurePass& measure, const TuneOptions& options,
                            const Clock& clock = system_clock());

}  // namespace troika::engine
