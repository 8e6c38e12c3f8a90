#include "troika/planner/group_division.h"

namespace troika::planner {

Strategy within_pass(Strategy strategy) {
  if (strategy.rows == Rows::kTile) strategy.rows = Rows::kPieces;
  return strategy;
}

Result<OperatorPlan> plan_group(const PassSpace& space, const SiteGroup& group,
                                const Strategy& strategy, int64_t rows) {
  cost::Product product = space.product(group, rows);
  Strategy own = within_pass(strategy);
  // Wanted rows cannot be divided among devices.
  if (space.is_head(group)) own.cut_rows = false;
  std::string last;
  for (const std::string_view type : soc::types_near(product.weight_bits)) {
    product.type = type;
    auto plan = plan_operator(space.cost(), product, own);
    if (plan) return plan;
    if (plan.error().code != ErrorCode::kUnsupported) {
      return plan;
    }
    last = plan.error().message;
  }
  return make_error(ErrorCode::kUnsupported, "{}", last);
}

Result<Division> divide(const PassSpace& space, const SiteGroup& group, const Strategy& strategy,
                        int64_t rows) {
  ASSIGN_OR_RETURN(const OperatorPlan plan, plan_group(space, group, strategy, rows));
  return plan.chosen;
}

std::optional<size_t> group_before(const PassSpace& space, size_t group) {
  const graph::Graph& graph = space.graph();
  const Site& site = space.sites()[space.groups()[group].sites.front()];
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const graph::Op& op = graph.ops[i];
    const auto id = static_cast<graph::OpId>(i);
    if (op.kind != graph::OpKind::kMatMul || op.stage != site.stage) continue;
    if (plan::product_name(graph, id) != site.name) continue;
    const graph::OpId before = graph.tensor(op.inputs[0]).producer;
    if (graph.op(before).kind != graph::OpKind::kSiluMul) return std::nullopt;
    const graph::OpId gate = graph.tensor(graph.op(before).inputs[0]).producer;
    for (size_t g = 0; g < space.groups().size(); ++g) {
      for (const size_t other : space.groups()[g].sites) {
        if (space.sites()[other].stage == site.stage &&
            space.sites()[other].name == plan::product_name(graph, gate)) {
          return g;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace troika::planner
