// Where the operators of a pass stand in its order, for PassScheduler.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "troika/graph/graph.h"
#include "troika/plan/shares.h"
#include "troika/sim/pass_cut.h"
#include "troika/sim/pass_schedule.h"
#include "troika/sim/pass_tasks.h"

namespace troika::sim {

inline constexpr std::array kStageOf = {graph::Stage::kG1, graph::Stage::kAttention,
                                        graph::Stage::kG2};

// Where the operators of a pass stand: 0: the input, then as many positions for each layer, then
// the head. A layer has one for each stage, or, where blocks take turns, one for each turn.
struct Layout {
  int32_t positions = 0;
  int32_t of_layer = 0;
  std::array<int32_t, kStageOf.size() + 1> first{};  // by stage of a layer
  std::vector<std::vector<graph::OpId>> ops;         // by position
  std::vector<bool> like_next;                       // by layer
  std::vector<TaskPlace> place_at;                   // by position, of the first chunk
  std::unique_ptr<PassCutter> cutter;
  std::unique_ptr<PassGrouper> grouper;

  int32_t begin_of(int32_t layer) const { return 1 + of_layer * layer; }
  // The positions of a step.
  plan::Range range_of(graph::Stage stage, int32_t layer) const {
    if (stage == graph::Stage::kInput) return {0, 1};
    if (stage == graph::Stage::kHead) return {positions - 1, positions};
    const auto number =
        static_cast<size_t>(std::find(kStageOf.begin(), kStageOf.end(), stage) - kStageOf.begin());
    return {begin_of(layer) + first[number], begin_of(layer) + first[number + 1]};
  }
};

// Positions for stages, or for their turns: nothing where layers take different ones, or keys are
// written before the last one. Cutter and grouper are not made.
std::optional<Layout> layout_of(const graph::Graph& graph, bool in_turns);

}  // namespace troika::sim
