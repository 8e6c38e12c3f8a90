// What `troika plan` says about one product.
#pragma once

#include <string>

#include "cli/json_output.h"
#include "troika/cost/described_cost.h"
#include "troika/planner/operator_plan.h"

namespace troika::cli {

// Borrows all of it.
struct OperatorReport {
  struct Inputs {
    cost::Product product;
    planner::Strategy strategy;
  };
  const cost::DescribedCost& cost;
  const Inputs& inputs;
  const planner::OperatorPlan& plan;
};

Json report_json(const OperatorReport& report);
std::string report_text(const OperatorReport& report);

}  // namespace troika::cli
