// The operator solver asked about groups of products of a pass.
#pragma once

#include <optional>
#include <vector>

#include "troika/planner/pass_space.h"

namespace troika::planner {

// Rows as the devices of a pass take them.
Strategy within_pass(Strategy strategy);

// A group of so many rows (the head's: the wanted ones) by the strategy. kUnsupported if no device
// can have it.
Result<OperatorPlan> plan_group(const PassSpace& space, const SiteGroup& group,
                                const Strategy& strategy, int64_t rows);
// The division that it chooses.
Result<Division> divide(const PassSpace& space, const SiteGroup& group, const Strategy& strategy,
                        int64_t rows);

// The group whose outputs another group takes as slices of its inputs: gate and up before down.
std::optional<size_t> group_before(const PassSpace& space, size_t group);

}  // namespace troika::planner
