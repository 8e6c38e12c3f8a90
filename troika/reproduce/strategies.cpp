// Strategies of published ablations, which nobody would choose by name.
#include "troika/reproduce/runs.h"

namespace troika::reproduce {
namespace {

constexpr std::string_view kStep = "step:";

}  // namespace

Result<planner::Strategy> strategy_of(std::string_view name) {
  if (name.substr(0, kStep.size()) != kStep) return planner::strategy_from(name);
  const std::string_view step = name.substr(kStep.size());
  if (step == "unchunked") {
    ASSIGN_OR_RETURN(planner::Strategy strategy, planner::strategy_from("heteromosaic"));
    strategy.most_chunks = 1;
    strategy.guard = false;
    return strategy;
  }
  planner::Strategy strategy;
  strategy.name = name;
  if (step == "naive") {
    // Everything on the unit with static graphs, padded, the weight in place.
    strategy.static_only = true;
    strategy.rows = planner::Rows::kStandard;
    strategy.operand_order = false;
    return strategy;
  }
  ASSIGN_OR_RETURN(const planner::Strategy whole, planner::strategy_from("heteroinfer"));
  strategy.cut_rows = true;
  strategy.grid = whole.grid;
  strategy.grid_one_row = whole.grid_one_row;
  strategy.operand_order = step != "activation-centric";
  strategy.cut_outputs = step == "weight-centric";
  if (step == "activation-centric" || step == "operand-order" || step == "weight-centric") {
    return strategy;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "step '{}' is not known; steps: naive, activation-centric, operand-order, "
                    "weight-centric, unchunked",
                    step.substr(0, 60));
}

}  // namespace troika::reproduce
