// Operators that a device cannot compute, though it takes part in the plan: the other devices do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// Whether the plan's `device`th device can compute an operator of the graph that is not cut yet.
using CanCompute = std::function<bool(size_t device, graph::OpId op)>;

// Takes products away from devices that cannot compute them, and other operators with all of their
// stage; for plans without placements for single chunks. Gives a line for each device that lost
// something: "opencl cannot compute q, v". kUnsupported if no device can compute an operator.
Result<std::vector<std::string>> give_to_others(Plan& plan, const graph::Graph& graph,
                                                const CanCompute& can_compute);

}  // namespace troika::plan
