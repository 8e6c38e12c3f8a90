#include "troika/plan/cut_graph.h"

#include <algorithm>

#include "troika/plan/cutter.h"

namespace troika::plan {

using graph::Op;
using graph::OpKind;
using graph::Stage;
using graph::TensorId;

Cutter::Cutter(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
               int64_t max_logit_rows, std::span<const device::DeviceInfo> infos, CutGraph& out)
    : plan_(plan),
      graph_(graph),
      infos_(infos),
      table_(plan, bucket, graph),
      ranges_(graph, plan.devices, infos),
      slices_(graph, infos, max_logit_rows, out),
      out_(out) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    stages_[{op.stage, op.layer}].push_back(static_cast<OpId>(i));
  }
  for (size_t b = 0; b < out.n_worked_on; ++b) {
    const Block& block = out.blocks[b];
    Unit& unit = units_[{block.chunk, block.chunks}];
    if (unit.blocks.empty()) unit.rows.begin = block.begin;
    unit.rows.end = block.end();
    unit.blocks.push_back(static_cast<int32_t>(b));
  }
}

void Cutter::run(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const std::vector<int32_t>& blocks = units_.at({step.chunk, step.chunks}).blocks;
    const auto all = turns(graph_, stages_[{step.stage, step.layer}]);
    for (size_t turn = 0; turn < all.size(); ++turn) {
      if (step.turn >= 0 && step.turn != static_cast<int32_t>(turn)) continue;
      for (const int32_t block : blocks) {
        for (const OpId op : all[turn]) run_op(op, block, step.chunk);
      }
    }
    slices_.next_step();
  }
  run_head();
}

void Cutter::run_head() {
  for (const OpId op : stages_[{Stage::kHead, -1}]) run_op(op, kWholePass, 0);
  const OpId last = graph_.tensor(graph_.logits).producer;
  const Placement& placement = table_.of(last, 0);
  slices_.set_context(Stage::kHead, -1, 0);
  out_.graph.logits =
      slices_.read_all(graph_.logits, kWholePass, table_.device(placement.parts.front()));
}

void Cutter::run_op(OpId id, int32_t block, int32_t chunk) {
  const Op& op = graph_.op(id);
  const Placement& placement = table_.of(id, chunk);
  slices_.set_context(op.stage, op.layer, placement.delay_us);
  switch (op.kind) {
    case OpKind::kEmbed:
    case OpKind::kRopeTable:
    case OpKind::kRmsNorm:
    case OpKind::kAdd:
    case OpKind::kGatherRows:
      // Without an owner it is computed where it is needed, see want().
      if (const auto owner = sole_owner(placement, block)) light(id, block, *owner, true);
      break;
    case OpKind::kMatMul:
      product(id, block, placement);
      break;
    case OpKind::kRope:
    case OpKind::kSiluMul:
      follow(id, block, placement);
      break;
    case OpKind::kKvWrite:
      kv_write(id, block, placement);
      break;
    case OpKind::kAttention:
      attention(id, block, placement);
      break;
    case OpKind::kConcat:
      break;  // only cutting makes them
  }
}

std::optional<int32_t> Cutter::sole_owner(const Placement& placement, int32_t block) const {
  if (placement.parts.size() == 1) return table_.device(placement.parts.front());
  if (placement.cut != Cut::kActivationCentric || block == kWholePass) return std::nullopt;
  const Block& rows = out_.blocks[static_cast<size_t>(block)];
  const Range unit = units_.at({rows.chunk, rows.chunks}).rows;
  const size_t part = part_of_rows(placement, plan_, infos_, unit.begin, unit.size(), rows.begin);
  return table_.device(placement.parts[part]);
}

std::vector<SliceSpec> Cutter::to_specs(const Placement& placement,
                                        const std::vector<Range>& ranges) const {
  std::vector<SliceSpec> specs;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i].empty()) specs.push_back({table_.device(placement.parts[i]), ranges[i]});
  }
  return specs;
}

Range CutGraph::rows_of(TensorId tensor) const {
  const int32_t block = tensor_blocks[static_cast<size_t>(tensor)];
  if (block == kWholePass) return {0, rows};
  const Block& its = blocks[static_cast<size_t>(block)];
  return {its.begin, its.end()};
}

int64_t CutGraph::row_in_memory(TensorId tensor) const {
  return rows_of(tensor).begin - rows_of(graph.memory_of(tensor)).begin;
}

Result<CutGraph> cut(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                     int64_t rows, int64_t max_logit_rows,
                     std::span<const device::DeviceInfo> infos) {
  CutGraph out;
  out.graph.model = graph.model;
  out.graph.n_layers = graph.n_layers;
  out.graph.n_kv_heads = graph.n_kv_heads;
  out.graph.head_dim = graph.head_dim;
  out.graph.n_vocab = graph.n_vocab;
  out.graph.rope_inv_freq = graph.rope_inv_freq;
  ASSIGN_OR_RETURN(RowCut row_cut, cut_rows(plan, bucket, rows, infos));
  out.blocks = std::move(row_cut.blocks);
  out.n_worked_on = row_cut.n_worked_on;
  out.rows = rows;
  ASSIGN_OR_RETURN(const std::vector<Step> steps,
                   order_steps(plan, bucket, static_cast<int32_t>(graph.n_layers),
                               chunk_count(bucket, rows), row_cut.apart, turn_counts(graph)));
  Cutter(plan, bucket, graph, max_logit_rows, infos, out).run(steps);
  return out;
}

}  // namespace troika::plan
