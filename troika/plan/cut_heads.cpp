// What is computed where its input is (RoPE, SiLU, KV writes), and attention by heads.
#include "troika/plan/cutter.h"

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

void take_heads(graph::HeadShape& heads, Range columns) {
  heads.first_head = columns.begin / heads.head_dim;
  heads.n_heads = columns.size() / heads.head_dim;
}

}  // namespace

// The slices of a tensor; if it only exists as partial sums, all of it on the first device.
std::vector<SliceSpec> Cutter::places(TensorId tensor, int32_t block, const Placement& placement) {
  std::vector<SliceSpec> specs = slices_.shared(tensor, block);
  if (specs.empty()) {
    specs.push_back({table_.device(placement.parts.front()), {0, slices_.width(tensor)}});
  }
  return specs;
}

void Cutter::follow(OpId id, int32_t block, const Placement& placement) {
  const Op& source = graph_.op(id);
  const auto specs = places(source.inputs[0], block, placement);
  std::vector<std::vector<TensorId>> inputs;
  for (const SliceSpec& spec : specs) {
    inputs.push_back({read(source.inputs[0], block, spec.device, spec.columns)});
    // Of a RoPE table all, of a second factor the same columns.
    const TensorId other = source.inputs[1];
    inputs.back().push_back(source.kind == OpKind::kRope
                                ? read_all(other, block, spec.device)
                                : read(other, block, spec.device, spec.columns));
  }
  const auto outputs = slices_.outputs(source.output, block, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    Op op = source;
    op.inputs = inputs[i];
    op.output = outputs[i];
    if (source.kind == OpKind::kRope) take_heads(op.heads, specs[i].columns);
    slices_.emit(std::move(op), specs[i].device, block);
  }
}

void Cutter::kv_write(OpId id, int32_t block, const Placement& placement) {
  const Op& source = graph_.op(id);
  for (const SliceSpec& spec : places(source.inputs[0], block, placement)) {
    Op op = source;
    op.inputs = {read(source.inputs[0], block, spec.device, spec.columns),
                 read(source.inputs[1], block, spec.device, spec.columns)};
    op.output = slices_.order(source.output, block);
    take_heads(op.heads, spec.columns);
    slices_.emit(std::move(op), spec.device, block);
  }
}

void Cutter::attention(OpId id, int32_t block, const Placement& placement) {
  const Op& source = graph_.op(id);
  const int64_t head_dim = source.heads.head_dim;
  std::vector<SliceSpec> specs;
  if (const auto owner = sole_owner(placement, block)) {
    specs.push_back({*owner, {0, slices_.width(source.output)}});
  } else if (placement.cut == Cut::kPaired) {
    specs = places(source.inputs[0], block, placement);
  } else {
    std::vector<Range> heads = split(source.heads.n_heads, 1, placement.shares());
    for (Range& range : heads) range = {range.begin * head_dim, range.end * head_dim};
    specs = to_specs(placement, heads);
  }
  std::vector<TensorId> inputs;
  for (const SliceSpec& spec : specs) {
    inputs.push_back(read(source.inputs[0], block, spec.device, spec.columns));
  }
  const auto outputs = slices_.outputs(source.output, block, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    Op op = source;
    // The KV cache is not an edge of one tensor: lowering orders writers and readers of it.
    op.inputs = {inputs[i]};
    op.output = outputs[i];
    take_heads(op.heads, specs[i].columns);
    slices_.emit(std::move(op), specs[i].device, block);
  }
}

}  // namespace troika::plan
