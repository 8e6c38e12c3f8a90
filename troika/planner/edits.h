// Single edits of a bucket, drawn from what its simulated trace shows: what hill climbing tries.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "troika/planner/pass_candidates.h"
#include "troika/planner/pass_evaluator.h"
#include "troika/planner/pass_space.h"
#include "troika/planner/strategy.h"

namespace troika::planner {

struct Edit {
  std::string name;  // "gate: 12 % from gpu to npu"
  plan::RowsBucket bucket;
};

// The edits that the strategy allows, those of the most critical stages and devices first. `run`
// has scored the bucket last. `solved` are buckets whose groups' choices may be taken over one by
// one: what the operator solver gives.
std::vector<Edit> edits_of(const PassSpace& space, const Strategy& strategy,
                           const plan::RowsBucket& bucket, const PassEvaluator& run,
                           std::span<const Candidate> solved);

}  // namespace troika::planner
