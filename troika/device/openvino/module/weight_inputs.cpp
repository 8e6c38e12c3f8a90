#include "troika/device/openvino/module/weight_inputs.h"

namespace troika::device::openvino {
namespace {

using graph::Op;
using graph::OpKind;
using model::TensorType;

// OpenVINO only reads inputs, but its tensors are over memory that may change.
void* memory_of(const model::Weight& weight, int64_t first_row) {
  return const_cast<std::byte*>(weight.data) + first_row * weight.row_bytes();
}

ov::Tensor tensor_of(const graph::Graph& graph, const Op& op) {
  const auto type = op.weight->type == TensorType::kF16 ? ov::element::f16 : ov::element::f32;
  if (op.kind == OpKind::kRmsNorm) {
    return {type, {static_cast<size_t>(op.weight->cols)}, memory_of(*op.weight, 0)};
  }
  const graph::WeightSlice slice = graph::weight_slice(graph, op);
  return {type,
          {static_cast<size_t>(slice.n), static_cast<size_t>(slice.k)},
          memory_of(*slice.weight, slice.n_begin)};
}

}  // namespace

bool can_be_input(const graph::Graph& graph, const Op& op) {
  if (op.kind == OpKind::kRmsNorm) return op.weight->type == TensorType::kF32;
  if (op.kind != OpKind::kMatMul) return false;
  if (op.weight->type != TensorType::kF32 && op.weight->type != TensorType::kF16) return false;
  const graph::WeightSlice slice = graph::weight_slice(graph, op);
  return slice.k_begin == 0 && slice.k == op.weight->cols;
}

std::vector<WeightInput> weight_inputs(const Program& program, const Segment& segment) {
  std::vector<WeightInput> inputs;
  for (const graph::OpId id : segment.ops) {
    const Op& op = program.graph->op(id);
    if (can_be_input(*program.graph, op)) inputs.push_back({id, tensor_of(*program.graph, op)});
  }
  return inputs;
}

}  // namespace troika::device::openvino
