#include "troika/sim/pass_layout.h"

#include <span>

#include "troika/plan/steps.h"

namespace troika::sim {
namespace {

using graph::Op;
using graph::OpId;
using graph::OpKind;

// Layers whose operators have the same shapes and stored types.
bool alike(const graph::Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](OpId x, OpId y) {
    const Op& one = graph.op(x);
    const Op& other = graph.op(y);
    const bool same_weight = (one.weight == nullptr) == (other.weight == nullptr) &&
                             (one.weight == nullptr || (one.weight->type == other.weight->type &&
                                                        one.weight->rows == other.weight->rows &&
                                                        one.weight->cols == other.weight->cols));
    return one.kind == other.kind && same_weight &&
           graph.tensor(one.output).width == graph.tensor(other.output).width &&
           one.heads.n_heads == other.heads.n_heads && one.heads.group == other.heads.group;
  });
}

}  // namespace

std::optional<Layout> layout_of(const graph::Graph& graph, bool in_turns) {
  const auto layers = static_cast<int32_t>(graph.n_layers);
  std::vector<OpId> outer[2];
  std::vector<std::array<std::vector<OpId>, kStageOf.size()>> stages(static_cast<size_t>(layers));
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const Op& op = graph.ops[id];
    const auto stage = std::find(kStageOf.begin(), kStageOf.end(), op.stage);
    std::vector<OpId>& own =
        stage == kStageOf.end()
            ? outer[op.stage == graph::Stage::kHead ? 1 : 0]
            : stages[static_cast<size_t>(op.layer)][static_cast<size_t>(stage - kStageOf.begin())];
    own.push_back(static_cast<OpId>(id));
  }
  Layout layout;
  layout.ops.push_back(outer[0]);
  layout.place_at.push_back({graph::Stage::kInput, -1, 0});
  for (int32_t layer = 0; layer < layers; ++layer) {
    const auto begin = static_cast<int32_t>(layout.ops.size());
    for (size_t stage = 0; stage < kStageOf.size(); ++stage) {
      const std::vector<OpId>& all = stages[static_cast<size_t>(layer)][stage];
      std::vector<std::span<const OpId>> turns = {all};
      if (in_turns) turns = plan::turns(graph, all);
      for (const std::span<const OpId> turn : turns) {
        const bool keys = std::any_of(turn.begin(), turn.end(), [&](OpId id) {
          return graph.op(id).kind == OpKind::kKvWrite;
        });
        if (keys && turn.data() != turns.back().data()) return std::nullopt;
        layout.ops.emplace_back(turn.begin(), turn.end());
        layout.place_at.push_back({kStageOf[stage], layer, 0});
      }
      const int32_t end = static_cast<int32_t>(layout.ops.size()) - begin;
      if (layer > 0 && layout.first[stage + 1] != end) return std::nullopt;
      layout.first[stage + 1] = end;
    }
  }
  layout.of_layer = layout.first.back();
  layout.ops.push_back(outer[1]);
  layout.place_at.push_back({graph::Stage::kHead, -1, 0});
  layout.positions = static_cast<int32_t>(layout.ops.size());
  for (int32_t layer = 0; layer < layers; ++layer) {
    bool same = layer + 1 < layers;
    for (int32_t i = 0; i < layout.of_layer && same; ++i) {
      const auto position = static_cast<size_t>(layout.begin_of(layer)) + static_cast<size_t>(i);
      same = alike(graph, layout.ops[position],
                   layout.ops[position + static_cast<size_t>(layout.of_layer)]);
    }
    layout.like_next.push_back(same);
  }
  return layout;
}

}  // namespace troika::sim
