// Whether a plan that should be faster is faster, by measurements that are noisy: both are measured
// again and again in turn, and the new one is taken only for a gain beyond the noise.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/plan/plan.h"

namespace troika::planner {

// Runs one pass by a bucket, on devices or simulated, and tells its time, us (above 0).
using MeasurePass = std::function<Result<double>(const plan::RowsBucket&)>;

struct ConfirmOptions {
  int32_t least_pairs = 6;     // of runs, one of each plan; looked at after so many, and after each
  int32_t most_pairs = 48;     // doubling of them up to this
  double false_accept = 0.02;  // chance to take a plan that is no faster, over all looks and plans
  double least_gain = 0;       // part of the time that must be gained
};

struct Confirmation {
  bool accepted = false;
  int32_t pairs = 0;
  double gain = 0;        // part of the incumbent's time, the mean of the pairs
  double least_gain = 0;  // its lower bound
  double most_gain = 0;   // and its upper one
  std::string reason;     // one sentence
};

// Pairs of runs in the order ab, ba, ab ..., so that a drift of the machine falls on both. The
// measurement's first error is returned. Stops at the first look that decides.
Result<Confirmation> confirm(const plan::RowsBucket& incumbent, const plan::RowsBucket& challenger,
                             const MeasurePass& measure, const ConfirmOptions& options = {});

struct Tuned {
  size_t winner = 0;                        // 0: the incumbent; i + 1: challenger i
  std::vector<Confirmation> confirmations;  // by challenger
};

// The challengers one after another, each against the best so far. The chance to end with a plan
// that is no faster than the incumbent is at most `false_accept`.
Result<Tuned> tune_measured(const plan::RowsBucket& incumbent,
                            std::span<const plan::RowsBucket> challengers,
                            const MeasurePass& measure, const ConfirmOptions& options = {});

}  // namespace troika::planner
