// The buckets that a strategy allows for a pass without looking at schedules: one device alone, or
// each group of products as the operator solver divides it.
#pragma once

#include <string>
#include <vector>

#include "troika/planner/pass_space.h"

namespace troika::planner {

struct Candidate {
  std::string name;
  plan::RowsBucket bucket;
  bool single = false;  // products on one device only
};

// Each device that can have any product, alone: its name is "NAME alone".
std::vector<Candidate> single_candidates(const PassSpace& space);

// What the strategy stands for without chunks, solved for passes of `chunk_rows` rows; its own rule
// first. kInvalidArgument for a device that does not exist; kUnsupported if it can have nothing.
Result<std::vector<Candidate>> strategy_candidates(const PassSpace& space, const Strategy& strategy,
                                                   int64_t chunk_rows);

}  // namespace troika::planner
