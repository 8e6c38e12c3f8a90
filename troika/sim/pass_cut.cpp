#include "troika/sim/pass_cut.h"

#include <algorithm>
#include <climits>

#include "troika/plan/light_operators.h"
#include "troika/sim/operator_cost.h"

namespace troika::sim {

using graph::Op;
using graph::OpId;
using graph::OpKind;
using graph::TensorId;
using plan::is_light;
using plan::kMostRecomputed;
using plan::Range;

PassCutter::PassCutter(const graph::Graph& graph, std::span<const device::DeviceInfo> infos,
                       const std::vector<std::string>& devices, const plan::ProductRanges& ranges,
                       const LoweredOptions& options, int32_t positions_of_layer)
    : graph_(graph),
      infos_(infos),
      devices_(devices),
      ranges_(ranges),
      options_(options),
      positions_of_layer_(positions_of_layer),
      where_(graph.tensors.size()) {
  std::vector<int32_t> of_layer(static_cast<size_t>(graph.n_layers), 0);
  for (const Op& op : graph.ops) {
    Place& place = where_[static_cast<size_t>(op.output)];
    place.layer = op.layer;
    place.head = op.stage == graph::Stage::kHead;
    size_t& size = place.head ? head_size_ : op.layer < 0 ? outer_size_ : layer_size_;
    if (op.layer < 0) {
      place.index = static_cast<int32_t>(size++);
    } else {
      place.index = of_layer[static_cast<size_t>(op.layer)]++;
      size = std::max(size, static_cast<size_t>(place.index) + 1);
    }
  }
}

void PassCutter::begin(bool one_row) {
  own_.outer.assign(outer_size_, {});
  for (auto& values : own_.layers) values.assign(layer_size_, {});
  own_.layer[0] = own_.layer[1] = -1;
  own_.one_row = one_row;
  memory_ = &own_;
  in_head_ = false;
  block_ = -1;
}

void PassCutter::start(int32_t position, CutStage& out) {
  out.ops.clear();
  out.deps.clear();
  out.cross.clear();
  out.kv_writers.clear();
  out.attention.clear();
  out_ = &out;
  position_ = position;
  layer_ = position == 0 ? -1 : (position - 1) / positions_of_layer_;
  if (layer_ < 0 || in_head_ || block_ >= 0) return;
  const auto slot = static_cast<size_t>(layer_ % 2);
  if (own_.layer[slot] == layer_) return;
  for (Value& one : own_.layers[slot]) {
    one.slices.clear();
    one.whole = false;
  }
  own_.layer[slot] = layer_;
}

void PassCutter::skip(int32_t from, int32_t to) {
  const int32_t layers = to - from;
  if (layers % 2 != 0) std::swap(own_.layers[0], own_.layers[1]);
  for (size_t slot = 0; slot < 2; ++slot) {
    for (Value& one : own_.layers[slot]) {
      for (Slice& slice : one.slices) {
        if (!slice.writer.fixed) slice.writer.position += positions_of_layer_ * layers;
      }
    }
  }
  own_.layer[to % 2] = to;
  own_.layer[(to + 1) % 2] = to - 1;
}

PassCutter::Value& PassCutter::value(TensorId tensor) {
  const Place& place = where_[static_cast<size_t>(tensor)];
  if (place.head) return head_[static_cast<size_t>(place.index)];
  nothing_ = {};
  if (in_head_) return nothing_;  // only blocks have it
  if (place.layer < 0) return memory_->outer[static_cast<size_t>(place.index)];
  const auto slot = static_cast<size_t>(place.layer % 2);
  if (memory_->layer[slot] != place.layer) {
    sound_ = false;
    return nothing_;
  }
  return memory_->layers[slot][static_cast<size_t>(place.index)];
}

int32_t PassCutter::device_of(const plan::Part& part) const {
  return plan::device_index(devices_, part);
}

bool PassCutter::has_partial_sums(TensorId tensor) {
  const auto& slices = value(tensor).slices;
  return std::any_of(slices.begin(), slices.end(), [](const Slice& s) { return s.partial; });
}

bool PassCutter::at_hand(TensorId tensor, int32_t device) {
  const auto& slices = value(tensor).slices;
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& s) {
    return s.shared() || (!s.partial && s.device == device && s.columns.size() == width(tensor));
  });
}

std::vector<PassCutter::Spec> PassCutter::shared(TensorId tensor) {
  std::vector<Spec> specs;
  for (const Slice& slice : value(tensor).slices) {
    if (slice.shared()) specs.push_back({slice.device, slice.columns});
  }
  return specs;
}

std::vector<PassCutter::Spec> PassCutter::to_specs(const plan::Placement& placement,
                                                   const std::vector<Range>& ranges) const {
  std::vector<Spec> specs;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i].empty()) specs.push_back({device_of(placement.parts[i]), ranges[i]});
  }
  return specs;
}

std::vector<PassCutter::Spec> PassCutter::places(TensorId tensor,
                                                 const plan::Placement& placement) {
  std::vector<Spec> specs = shared(tensor);
  if (specs.empty()) specs.push_back({device_of(placement.parts.front()), {0, width(tensor)}});
  return specs;
}

bool PassCutter::may_recompute(OpId id, int32_t device, int before) {
  const Op& op = graph_.op(id);
  return std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
    if (has_partial_sums(input) || at_hand(input, device)) return true;
    const OpId producer = graph_.tensor(input).producer;
    return before > 0 && is_light(graph_.op(producer).kind) &&
           may_recompute(producer, device, before - 1);
  });
}

void PassCutter::want(TensorId tensor, int32_t device) {
  const OpId id = graph_.tensor(tensor).producer;
  if (!is_light(graph_.op(id).kind) || at_hand(tensor, device)) return;
  const bool exists = !value(tensor).slices.empty();
  if (exists && !may_recompute(id, device, kMostRecomputed)) return;
  light(id, device, false);
}

void PassCutter::light(OpId id, int32_t device, bool for_all) {
  const Op& source = graph_.op(id);
  if (source.kind == OpKind::kGatherRows) return gather_rows(id, device, for_all);
  Inputs inputs;
  for (const TensorId input : source.inputs) {
    const bool as_sums =
        source.kind == OpKind::kAdd && has_partial_sums(input) && !at_hand(input, device);
    if (!as_sums) {
      read(input, device, {0, width(input)}, inputs);
      continue;
    }
    for (const Slice& slice : value(input).slices) {
      if (!slice.partial) continue;
      add_writer(slice, inputs);
      add_width(input, width(input), inputs);
    }
  }
  CutOp op;
  op.kind = source.kind;
  op.device = device;
  const OpRef writer = emit(op, inputs, source.output, width(source.output));
  Value& output = value(source.output);
  if (for_all) output.whole = true;
  output.slices.push_back({device, {0, width(source.output)}, writer, false, !for_all, false});
}

void PassCutter::gather_rows(OpId id, int32_t device, bool for_all) {
  const Op& source = graph_.op(id);
  Value& output = value(source.output);
  if (for_all) output.whole = true;
  output.slices.push_back({device, {0, width(source.output)}, {}, false, !for_all, true});
  for (size_t b = 0; b < blocks_->size(); ++b) {
    memory_ = &(*blocks_)[b];
    block_ = static_cast<int32_t>(b);
    in_head_ = false;
    Inputs inputs;
    read(source.inputs[0], device, {0, width(source.inputs[0])}, inputs);
    CutOp op;
    op.kind = source.kind;
    op.device = device;
    gathers_.push_back(emit(op, inputs, source.output, width(source.output)));
    in_head_ = true;
    block_ = -1;
  }
}

void PassCutter::add_width(TensorId tensor, int64_t columns, Inputs& inputs) const {
  if (inputs.first_width == 0) inputs.first_width = columns;
  inputs.width += columns;
  inputs.width_bytes += bytes(tensor, columns);
}

void PassCutter::add_writer(const Slice& slice, Inputs& inputs) const {
  if (slice.gathered) {
    inputs.deps.insert(inputs.deps.end(), gathers_.begin(), gathers_.end());
  } else {
    inputs.deps.push_back(slice.writer);
  }
}

// All that is written of these columns, by whomever.
void PassCutter::add_shared(TensorId tensor, Range columns, Inputs& inputs) {
  for (const Slice& slice : value(tensor).slices) {
    const bool overlaps = slice.columns.begin < columns.end && columns.begin < slice.columns.end;
    if (slice.shared() && overlaps) add_writer(slice, inputs);
  }
}

void PassCutter::read(TensorId tensor, int32_t device, Range columns, Inputs& inputs) {
  want(tensor, device);
  read_slices(tensor, device, columns, inputs);
}

void PassCutter::read_slices(TensorId tensor, int32_t device, Range columns, Inputs& inputs) {
  const Range all = {0, width(tensor)};
  if (has_partial_sums(tensor) && !at_hand(tensor, device)) {
    Inputs sums;
    for (const Slice& slice : value(tensor).slices) {
      if (!slice.partial) continue;
      add_writer(slice, sums);
      add_width(tensor, width(tensor), sums);
    }
    CutOp op;
    op.device = device;
    const OpRef writer = emit(op, sums, tensor, width(tensor));
    value(tensor).slices.push_back({device, all, writer, false, true, false});
    if (columns == all) {
      inputs.deps.push_back(writer);
      add_width(tensor, columns.size(), inputs);
      return;
    }
  }
  Value& v = value(tensor);
  const Slice* from = nullptr;
  int best_rank = INT_MAX;
  for (const Slice& slice : v.slices) {
    const bool covers = slice.columns.begin <= columns.begin && slice.columns.end >= columns.end;
    if (slice.partial || !covers) continue;
    const bool others_copy = slice.own_copy && slice.device != device;
    const int rank = (others_copy ? 4 : 0) + (slice.columns == columns ? 0 : 2) +
                     (slice.device == device ? 0 : 1);
    if (rank >= best_rank) continue;
    from = &slice;
    best_rank = rank;
  }
  if (from != nullptr && (from->columns == columns || takes_windows(device))) {
    const bool whole = from->columns != columns && v.whole && columns == all;
    if (!whole) add_writer(*from, inputs);
    if (whole) add_shared(tensor, columns, inputs);
    add_width(tensor, columns.size(), inputs);
    return;
  }
  if (v.whole && (columns == all || (from == nullptr && takes_windows(device)))) {
    add_shared(tensor, columns, inputs);
    add_width(tensor, columns.size(), inputs);
    return;
  }
  Inputs parts;
  if (from != nullptr) {
    add_writer(*from, parts);
    add_width(tensor, columns.size(), parts);
  } else {
    int64_t next = columns.begin;
    for (const Slice& slice : v.slices) {
      if (!slice.shared() || slice.columns.begin > next || slice.columns.end <= next) continue;
      const int64_t end = std::min(slice.columns.end, columns.end);
      add_writer(slice, parts);
      add_width(tensor, end - next, parts);
      next = end;
      if (next == columns.end) break;
    }
  }
  inputs.deps.push_back(concatenate(tensor, device, columns, parts));
  add_width(tensor, columns.size(), inputs);
}

OpRef PassCutter::concatenate(TensorId tensor, int32_t device, Range columns,
                              const Inputs& inputs) {
  CutOp op;
  op.kind = OpKind::kConcat;
  op.device = device;
  const OpRef writer = emit(op, inputs, tensor, columns.size());
  value(tensor).slices.push_back({device, columns, writer, false, true, false});
  return writer;
}

OpRef PassCutter::emit(CutOp op, const Inputs& inputs, TensorId output, int64_t output_width) {
  op.block = block_;
  op.width = inputs.width + output_width;
  op.width_bytes = inputs.width_bytes + bytes(output, output_width);
  op.wanted_rows = graph_.tensor(output).rows == graph::RowCount::kLogits;
  op.delay_us = delay_us_;
  op.first_dep = static_cast<int32_t>(out_->deps.size());
  op.n_deps = static_cast<int32_t>(inputs.deps.size());
  op.first_cross = static_cast<int32_t>(out_->cross.size());
  for (OpRef dep : inputs.deps) {
    // A block's own are its from here on, too; in the head they say whose they are.
    const bool of_block = block_ >= 0 && dep.block < 0;
    if (of_block) dep.block = block_;
    out_->deps.push_back(dep);
    if (dep.device != op.device) out_->cross.push_back(dep);
  }
  op.n_cross = static_cast<int32_t>(out_->cross.size()) - op.first_cross;
  OpRef ref{position_, static_cast<int32_t>(out_->ops.size()), op.device, -1,
            where_[static_cast<size_t>(output)].layer < 0};
  // What the head computes is found in the head, whatever rows it works on.
  if (blocks_ != nullptr) ref.block = kHeadBlock;
  if (op.kind == OpKind::kKvWrite) out_->kv_writers.push_back(ref.op);
  if (op.kind == OpKind::kAttention) out_->attention.push_back(ref.op);
  out_->ops.push_back(op);
  return ref;
}

// Windows of one tensor where every device can write those.
void PassCutter::mark_outputs(TensorId tensor, const std::vector<Spec>& specs) {
  const bool in_place =
      specs.size() > 1 && (one_row() || std::all_of(specs.begin(), specs.end(), [&](const Spec& s) {
                             return infos_[static_cast<size_t>(s.device)].strided;
                           }));
  const bool single = specs.size() == 1 && specs.front().columns == Range{0, width(tensor)};
  if (in_place || single) value(tensor).whole = true;
}

void PassCutter::run(OpId id, const Decision& decision) {
  const Op& op = graph_.op(id);
  delay_us_ = decision.placement->delay_us;
  switch (op.kind) {
    case OpKind::kEmbed:
    case OpKind::kRopeTable:
    case OpKind::kRmsNorm:
    case OpKind::kAdd:
    case OpKind::kGatherRows:
      if (decision.owner >= 0) light(id, decision.owner, true);
      break;
    case OpKind::kMatMul:
      product(id, decision);
      break;
    case OpKind::kRope:
    case OpKind::kSiluMul:
      follow(id, *decision.placement);
      break;
    case OpKind::kKvWrite:
      kv_write(id, *decision.placement);
      break;
    case OpKind::kAttention:
      attention(id, decision);
      break;
    case OpKind::kConcat:
      break;
  }
}

CutOp PassCutter::product_op(OpId id, int32_t device, const plan::Placement& placement,
                             Range outputs, Range inputs) const {
  const int64_t n = outputs.size();
  const int64_t k = inputs.size();
  CutOp op;
  op.kind = OpKind::kMatMul;
  op.device = device;
  op.product = id;
  op.n = n;
  op.k = k;
  op.n_begin = outputs.begin;
  op.k_begin = inputs.begin;
  const auto& weight = *graph_.op(id).weight;
  op.weight_bits = stored_bits(asked_bits(options_, graph_.op(id).stage),
                               n * model::row_bytes(weight.type, k), n, k);
  for (const plan::Part& part : placement.parts) {
    if (device_of(part) != device) continue;
    op.input_stationary = part.input_stationary;
    break;
  }
  return op;
}

void PassCutter::product(OpId id, const Decision& decision) {
  const Op& op = graph_.op(id);
  const plan::Placement& placement = *decision.placement;
  if (decision.owner >= 0) return whole_product(id, decision.owner, placement);
  if (placement.cut == plan::Cut::kPaired && ranges_.takes_slices(op)) {
    const std::vector<Spec> held = shared(op.inputs[0]);
    const bool aligned = std::all_of(held.begin(), held.end(), [&](const Spec& spec) {
      return spec.columns.begin % plan::ProductRanges::block_of(op) == 0;
    });
    if (held.size() == 1) return whole_product(id, held.front().device, placement);
    if (held.empty() || !aligned) return output_slices(id, placement);
    return partial_products(id, placement, held);
  }
  if (placement.cut != plan::Cut::kK) return output_slices(id, placement);
  partial_products(id, placement, to_specs(placement, ranges_.inputs(op, placement)));
}

void PassCutter::whole_product(OpId id, int32_t device, const plan::Placement& placement) {
  const Op& source = graph_.op(id);
  Inputs inputs;
  read(source.inputs[0], device, {0, width(source.inputs[0])}, inputs);
  const std::vector<Spec> specs = {{device, {0, source.weight->rows}}};
  mark_outputs(source.output, specs);
  const OpRef writer = emit(
      product_op(id, device, placement, {0, width(source.output)}, {0, width(source.inputs[0])}),
      inputs, source.output, width(source.output));
  value(source.output)
      .slices.push_back({device, specs.front().columns, writer, false, false, false});
}

void PassCutter::output_slices(OpId id, const plan::Placement& placement) {
  const Op& source = graph_.op(id);
  const std::vector<Spec> specs = to_specs(placement, ranges_.outputs(source, placement));
  std::vector<Inputs> inputs(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    read(source.inputs[0], specs[i].device, {0, width(source.inputs[0])}, inputs[i]);
  }
  mark_outputs(source.output, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const OpRef writer = emit(
        product_op(id, specs[i].device, placement, specs[i].columns, {0, width(source.inputs[0])}),
        inputs[i], source.output, specs[i].columns.size());
    value(source.output)
        .slices.push_back({specs[i].device, specs[i].columns, writer, false, false, false});
  }
}

void PassCutter::partial_products(OpId id, const plan::Placement& placement,
                                  const std::vector<Spec>& specs) {
  if (specs.size() == 1) return whole_product(id, specs.front().device, placement);
  const Op& source = graph_.op(id);
  for (const Spec& spec : specs) {
    Inputs inputs;
    read(source.inputs[0], spec.device, spec.columns, inputs);
    const OpRef writer =
        emit(product_op(id, spec.device, placement, {0, width(source.output)}, spec.columns),
             inputs, source.output, width(source.output));
    value(source.output)
        .slices.push_back({spec.device, {0, width(source.output)}, writer, true, false, false});
  }
}

void PassCutter::follow(OpId id, const plan::Placement& placement) {
  const Op& source = graph_.op(id);
  const std::vector<Spec> specs = places(source.inputs[0], placement);
  std::vector<Inputs> inputs(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    read(source.inputs[0], specs[i].device, specs[i].columns, inputs[i]);
    const TensorId other = source.inputs[1];
    const bool table = source.kind == OpKind::kRope;
    read(other, specs[i].device, table ? Range{0, width(other)} : specs[i].columns, inputs[i]);
  }
  mark_outputs(source.output, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    CutOp op;
    op.kind = source.kind;
    op.device = specs[i].device;
    const OpRef writer = emit(op, inputs[i], source.output, specs[i].columns.size());
    value(source.output)
        .slices.push_back({specs[i].device, specs[i].columns, writer, false, false, false});
  }
}

void PassCutter::kv_write(OpId id, const plan::Placement& placement) {
  const Op& source = graph_.op(id);
  for (const Spec& spec : places(source.inputs[0], placement)) {
    Inputs inputs;
    read(source.inputs[0], spec.device, spec.columns, inputs);
    read(source.inputs[1], spec.device, spec.columns, inputs);
    CutOp op;
    op.kind = source.kind;
    op.device = spec.device;
    op.heads = {
        spec.columns.begin / source.heads.head_dim,
        spec.columns.begin / source.heads.head_dim + spec.columns.size() / source.heads.head_dim};
    emit(op, inputs, source.output, 0);
  }
}

void PassCutter::attention(OpId id, const Decision& decision) {
  const Op& source = graph_.op(id);
  const plan::Placement& placement = *decision.placement;
  const int64_t head_dim = source.heads.head_dim;
  std::vector<Spec> specs;
  if (decision.owner >= 0) {
    specs.push_back({decision.owner, {0, width(source.output)}});
  } else if (placement.cut == plan::Cut::kPaired) {
    specs = places(source.inputs[0], placement);
  } else {
    const std::vector<Range> heads = plan::split(source.heads.n_heads, 1, placement.shares());
    specs = to_specs(placement, heads);
    for (Spec& spec : specs) {
      spec.columns = {spec.columns.begin * head_dim, spec.columns.end * head_dim};
    }
  }
  std::vector<Inputs> inputs(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    read(source.inputs[0], specs[i].device, specs[i].columns, inputs[i]);
  }
  mark_outputs(source.output, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    CutOp op;
    op.kind = source.kind;
    op.device = specs[i].device;
    const int64_t first = specs[i].columns.begin / head_dim;
    const int64_t count = specs[i].columns.size() / head_dim;
    op.heads = {first / source.heads.group, (first + count - 1) / source.heads.group + 1};
    op.head_width = count * head_dim;
    op.group = source.heads.group;
    const OpRef writer = emit(op, inputs[i], source.output, specs[i].columns.size());
    value(source.output)
        .slices.push_back({specs[i].device, specs[i].columns, writer, false, false, false});
  }
}

void PassCutter::cut_head(std::vector<Memory>& blocks, bool one_row, int32_t position,
                          std::span<const OpId> ops, const std::vector<Decision>& decisions,
                          int32_t last_device, CutStage& out) {
  blocks_ = &blocks;
  head_.assign(head_size_, {});
  gathers_.clear();
  head_one_row_ = one_row;
  in_head_ = true;
  block_ = -1;
  start(position, out);
  for (size_t i = 0; i < ops.size(); ++i) run(ops[i], decisions[i]);
  delay_us_ = 0;
  Inputs inputs;
  read_slices(graph_.logits, last_device, {0, width(graph_.logits)}, inputs);
  blocks_ = nullptr;
  in_head_ = false;
}

}  // namespace troika::sim
