#include "troika/plan/placement_table.h"

namespace troika::plan {

PlacementTable::PlacementTable(const Plan& plan, const RowsBucket& bucket,
                               const graph::Graph& graph)
    : plan_(plan), graph_(graph) {
  for (const Placement& placement : bucket.placements) {
    for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
      by_place_[{placement.stage, layer}].push_back(&placement);
    }
  }
}

const Placement& PlacementTable::of(graph::OpId id, int32_t chunk) const {
  const graph::Op& op = graph_.op(id);
  const bool is_product = op.kind == graph::OpKind::kMatMul;
  const std::string_view name = is_product ? product_name(graph_, id) : std::string_view();
  const Placement* best = nullptr;
  int best_rank = -1;
  for (const Placement* candidate : by_place_.at({op.stage, op.layer})) {
    if (candidate->chunk >= 0 && candidate->chunk != chunk) continue;
    if (!candidate->op.empty() && candidate->op != name) continue;
    if (rank(*candidate) > best_rank) {
      best = candidate;
      best_rank = rank(*candidate);
    }
  }
  return *best;
}

int32_t PlacementTable::device(const Part& part) const { return device_index(plan_.devices, part); }

}  // namespace troika::plan
