// The number that a published case comes to when it is simulated.
#pragma once

#include <vector>

#include "troika/published/paper.h"
#include "troika/reproduce/runs.h"

namespace troika::reproduce {

// In the unit of the case's metric. The errors of planning; kInvalidArgument for a chip, shape,
// stack, strategy or unit that does not exist.
Result<double> simulated(const published::Case& one, Runs& runs);

// Every pass that simulated() will ask for.
std::vector<RunKey> passes_of(const published::Case& one);

}  // namespace troika::reproduce
