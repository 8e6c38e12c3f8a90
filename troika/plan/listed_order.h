// A bucket's planned order of steps, from the list that the plan gives.
#pragma once

#include <vector>

#include "troika/base/result.h"
#include "troika/plan/step_table.h"

namespace troika::plan {

// Every step of the table, as order_steps() says; the bucket has a list.
Result<std::vector<Step>> order_by_list(const Plan& plan, const RowsBucket& bucket,
                                        const StepTable& table);

}  // namespace troika::plan
