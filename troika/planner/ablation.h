// What each idea of the planner adds, on one chip and for one pass: a table.
#pragma once

#include <string>
#include <vector>

#include "troika/planner/model_plan.h"

namespace troika::planner {

struct AblationRow {
  std::string name;  // "+ weight-centric"
  double us = 0;
  double gain = 1;  // times as fast as the row before
  PassPlan plan;
};

// Each row has all that the rows before it have: one device for each product, held together by
// blocking calls and with the weight in place; then cuts along the rows, operand order, cuts along
// the outputs, paired cuts, fast synchronization, micro-batches, tuning on traces. A row has the
// plan of the one before it where that is better than what the solver makes of the new idea. The
// rows and depth are the request's; its way to synchronize is the one that "fast" stands for.
Result<std::vector<AblationRow>> ablation(const graph::Graph& graph, const cost::CostModel& cost,
                                          const PassRequest& request);

}  // namespace troika::planner
