// A start of the search that is exact where it can be: the best way through a layer by its
// operators' times and the joins between them.
#pragma once

#include "troika/planner/pass_candidates.h"

namespace troika::planner {

// Of each group of products every division that the operator solver knows, and of attention every
// device, for passes of so many rows; its name is "layer path". kUnsupported if there is no way.
Result<Candidate> layer_path_candidate(const PassSpace& space, const Strategy& strategy,
                                       int64_t rows);

}  // namespace troika::planner
