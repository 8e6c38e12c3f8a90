// How a pass is cut: the steps, and the stages of each kind of block.
#include <algorithm>

#include "troika/sim/pass_state.h"

namespace troika::sim {
namespace {

using graph::Op;
using graph::OpId;

bool same_deps(const CutStage& a, const CutStage& b, int32_t shift) {
  return std::equal(a.deps.begin(), a.deps.end(), b.deps.begin(), b.deps.end(),
                    [&](const OpRef& x, OpRef y) {
                      if (!y.fixed) y.position -= shift;
                      return x == y;
                    });
}

// What is compared does not include names: the same stage one layer later.
bool same_stage(const CutStage& a, const CutStage& b, int32_t shift) {
  return same_deps(a, b, shift) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(),
                    [](const CutOp& x, const CutOp& y) {
                      return x.kind == y.kind && x.device == y.device && x.n == y.n && x.k == y.k &&
                             x.n_begin == y.n_begin && x.k_begin == y.k_begin &&
                             x.width == y.width && x.heads == y.heads &&
                             x.head_width == y.head_width && x.weight_bits == y.weight_bits &&
                             x.input_stationary == y.input_stationary && x.delay_us == y.delay_us &&
                             x.n_deps == y.n_deps;
                    });
}

}  // namespace

const plan::Placement* PassScheduler::State::placement(const plan::RowsBucket& bucket, OpId id,
                                                       int32_t chunk) const {
  const Op& op = graph.op(id);
  const plan::Placement* best = nullptr;
  int best_rank = -1;
  for (const plan::Placement& one : bucket.placements) {
    if (one.stage != op.stage || op.layer < one.first_layer || op.layer > one.last_layer) continue;
    if (one.chunk >= 0 && one.chunk != chunk) continue;
    const int rank = plan::rank(one);
    if (rank <= best_rank || (!one.op.empty() && one.op != names[static_cast<size_t>(id)])) {
      continue;
    }
    best = &one;
    best_rank = rank;
  }
  return best;
}

Decision PassScheduler::State::decide(const plan::RowsBucket& bucket, OpId id,
                                      const BlockKind& kind) const {
  Decision decision;
  decision.placement = placement(bucket, id, kind.chunk);
  const plan::Placement& own = *decision.placement;
  size_t part = own.parts.size() == 1 ? 0 : own.parts.size();
  if (part > 0 && own.cut == plan::Cut::kActivationCentric && !kind.owners.empty()) {
    part = kind.owners[static_cast<size_t>(&own - bucket.placements.data())];
  }
  if (part >= own.parts.size()) return decision;
  decision.owner = plan::device_index(plan.devices, own.parts[part]);
  return decision;
}

BlockKind& PassScheduler::State::kind_of(const plan::RowsBucket& bucket, const plan::Block& block,
                                         plan::Range chunk) {
  BlockKind& kind = kinds.next();
  kind.one_row = block.padded == 1;
  kind.chunk = -1;
  kind.owners.clear();
  bool by_rows = false;
  for (const plan::Placement& one : bucket.placements) {
    if (one.chunk == block.chunk) kind.chunk = block.chunk;
    by_rows = by_rows || one.cut == plan::Cut::kActivationCentric;
  }
  for (const plan::Placement& one : bucket.placements) {
    if (!by_rows) break;
    const bool own = one.cut == plan::Cut::kActivationCentric;
    kind.owners.push_back(
        own ? plan::part_of_rows(one, plan, infos, chunk.begin, chunk.size(), block.begin) : 0);
  }
  for (size_t i = 0; i + 1 < kinds.size(); ++i) {
    const bool same = kinds[i].one_row == kind.one_row && kinds[i].chunk == kind.chunk &&
                      kinds[i].owners == kind.owners;
    if (!same) continue;
    kinds.give_back();
    return kinds[i];
  }
  cut_block(bucket, kind);
  return kind;
}

void PassScheduler::State::cut_block(const plan::RowsBucket& bucket, BlockKind& kind) {
  const auto decision = [&](OpId id) { return decide(bucket, id, kind); };
  const auto cut = [&](int32_t position) {
    CutStage& stage = stages.next();
    stage.number = static_cast<int32_t>(stages.size());
    layout->cutter->cut(position, layout->ops[static_cast<size_t>(position)], decision, stage);
    kind.by_position[static_cast<size_t>(position)] = {&stage, 0};
  };
  const int32_t of_layer = layout->of_layer;
  kind.by_position.assign(static_cast<size_t>(layout->positions), {nullptr, 0});
  layout->cutter->begin(kind.one_row);
  cut(0);
  const auto layers = static_cast<int32_t>(graph.n_layers);
  const auto like_before = [&](int32_t layer) {
    return layout->like_next[static_cast<size_t>(layer - 1)] && !border[static_cast<size_t>(layer)];
  };
  for (int32_t layer = 0; layer < layers; ++layer) {
    const int32_t first = layout->begin_of(layer);
    bool repeats = layer > 0 && like_before(layer);
    for (int32_t position = first; position < first + of_layer; ++position) {
      cut(position);
      if (!repeats) continue;
      const auto& [before, shift] = kind.by_position[static_cast<size_t>(position - of_layer)];
      repeats =
          shift == 0 &&
          same_stage(*before, *kind.by_position[static_cast<size_t>(position)].first, of_layer);
    }
    if (!repeats) continue;
    int32_t last = layer;
    while (last + 1 < layers && like_before(last + 1)) ++last;
    if (last == layer) continue;
    for (int32_t position = first + of_layer; position < layout->begin_of(last + 1); ++position) {
      const int32_t like = first + (position - first) % of_layer;
      kind.by_position[static_cast<size_t>(position)] = {
          kind.by_position[static_cast<size_t>(like)].first, position - like};
    }
    layout->cutter->skip(layer, last);
    layer = last;
  }
  layout->cutter->save(kind.memory);
}

// The steps, which most edits leave as they are: without a list, a rule knows chunks and window
// only.
Status PassScheduler::State::order(const plan::RowsBucket& bucket, int32_t chunks,
                                   const std::vector<bool>& apart) {
  const OrderKey key{bucket.order_rule, bucket.in_flight, bucket.lag, chunks};
  if (bucket.order.empty() && ordered == key) return {};
  ASSIGN_OR_RETURN(steps, plan::order_steps(plan, bucket, static_cast<int32_t>(graph.n_layers),
                                            chunks, apart, turn_counts));
  ordered = bucket.order.empty() ? std::optional(key) : std::nullopt;
  return {};
}

Status PassScheduler::State::cut_pass(const plan::RowsBucket& bucket, int64_t rows) {
  ASSIGN_OR_RETURN(plan::RowCut row_cut, plan::cut_rows(plan, bucket, rows, infos));
  blocks = std::move(row_cut.blocks);
  const int32_t chunks = plan::chunk_count(bucket, rows);
  RETURN_IF_ERROR(order(bucket, chunks, row_cut.apart));
  border.assign(static_cast<size_t>(graph.n_layers) + 1, false);
  for (const plan::Placement& one : bucket.placements) {
    if (one.first_layer < 0) continue;
    border[static_cast<size_t>(one.first_layer)] = true;
    border[static_cast<size_t>(one.last_layer) + 1] = true;
  }
  kinds.reset();
  stages.reset();
  std::vector<plan::Range> rows_of_chunk(static_cast<size_t>(chunks), {rows, 0});
  std::vector<std::vector<int32_t>> of_chunk(static_cast<size_t>(chunks));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto chunk = static_cast<size_t>(blocks[b].chunk);
    rows_of_chunk[chunk].begin = std::min(rows_of_chunk[chunk].begin, blocks[b].begin);
    rows_of_chunk[chunk].end = std::max(rows_of_chunk[chunk].end, blocks[b].end());
    of_chunk[chunk].push_back(static_cast<int32_t>(b));
  }
  const bool turns =
      (bucket.order.empty() && bucket.order_rule == plan::OrderRule::kProducts) ||
      std::any_of(of_chunk.begin(), of_chunk.end(), [](const auto& own) { return own.size() > 1; });
  const auto& wanted_layout = turns ? by_turns : by_stages;
  layout = wanted_layout ? &*wanted_layout : nullptr;
  if (layout == nullptr) return {};
  layout->cutter->begin_pass();
  std::vector<const BlockKind*> kind;
  memories.resize(blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto chunk = static_cast<size_t>(blocks[b].chunk);
    kind.push_back(&kind_of(bucket, blocks[b], rows_of_chunk[chunk]));
    memories[b] = kind.back()->memory;
  }
  instances.clear();
  int32_t number = 0;
  for (const plan::Step& step : steps) {
    plan::Range range = layout->range_of(step.stage, step.layer);
    if (step.turn >= 0) range = {range.begin + step.turn, range.begin + step.turn + 1};
    for (auto position = static_cast<int32_t>(range.begin); position < range.end; ++position) {
      for (const int32_t block : of_chunk[static_cast<size_t>(step.chunk)]) {
        const auto& [stage, shift] =
            kind[static_cast<size_t>(block)]->by_position[static_cast<size_t>(position)];
        instances.push_back({block, position, number, stage, shift, 0, false});
      }
    }
    ++number;
  }
  const int32_t last_position = layout->positions - 1;
  BlockKind of_head;
  std::vector<Decision> decisions;
  const auto& head_ops = layout->ops.back();
  for (const OpId id : head_ops) decisions.push_back(decide(bucket, id, of_head));
  const plan::Part& last = placement(bucket, graph.tensor(graph.logits).producer, 0)->parts.front();
  const int64_t wanted = std::min(options.logit_rows, rows);
  layout->cutter->cut_head(memories, wanted == 1, last_position, head_ops, decisions,
                           plan::device_index(plan.devices, last), head);
  instances.push_back({kHeadBlock, last_position, number, &head, 0, 0, false});
  return {};
}

}  // namespace troika::sim
