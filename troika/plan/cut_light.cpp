// Cheap operators of whole rows: where a stage is cut, each device computes those that it needs
// instead of waiting for another's.
#include <algorithm>

#include "troika/plan/cutter.h"
#include "troika/plan/light_operators.h"

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

}  // namespace

// True if the device can compute this operator from sums and from what is at hand, with at most
// `before` other cheap operators in a row before it: then it need not wait for another device to do
// the same.
bool Cutter::may_recompute(OpId id, int32_t block, int32_t device, int before) {
  const Op& op = graph_.op(id);
  return std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
    if (slices_.has_partial_sums(input, block) || slices_.at_hand(input, block, device)) {
      return true;
    }
    const OpId producer = graph_.tensor(input).producer;
    return before > 0 && is_light(graph_.op(producer).kind) &&
           may_recompute(producer, block, device, before - 1);
  });
}

// Makes sure that a value computed on demand exists for this device.
void Cutter::want(TensorId tensor, int32_t block, int32_t device) {
  const OpId id = graph_.tensor(tensor).producer;
  if (!is_light(graph_.op(id).kind) || slices_.at_hand(tensor, block, device)) return;
  const bool exists = !slices_.of(tensor, block).empty();
  if (exists && !may_recompute(id, block, device, kMostRecomputed)) {
    return;  // another's copy will do
  }
  light(id, block, device, false);
}

TensorId Cutter::read(TensorId tensor, int32_t block, int32_t device, Range columns) {
  want(tensor, block, device);
  return slices_.read(tensor, block, device, columns);
}
TensorId Cutter::read_all(TensorId tensor, int32_t block, int32_t device) {
  return read(tensor, block, device, {0, slices_.width(tensor)});
}

void Cutter::light(OpId id, int32_t block, int32_t device, bool for_all) {
  const Op& source = graph_.op(id);
  if (source.kind == OpKind::kGatherRows) return gather_rows(id, device, for_all);
  Op op = source;
  op.inputs.clear();
  for (const TensorId input : source.inputs) {
    const bool as_sums = source.kind == OpKind::kAdd && slices_.has_partial_sums(input, block) &&
                         !slices_.at_hand(input, block, device);
    if (!as_sums) {
      op.inputs.push_back(read_all(input, block, device));
      continue;
    }
    for (const Slice& slice : slices_.of(input, block)) {
      if (slice.partial) op.inputs.push_back(slice.tensor);
    }
  }
  op.output = light_output(source.output, block, device, for_all);
  slices_.emit(std::move(op), device, block);
}

TensorId Cutter::light_output(TensorId tensor, int32_t block, int32_t device, bool for_all) {
  if (!for_all) return slices_.own_copy(tensor, block, device);
  return slices_.outputs(tensor, block, {{device, {0, slices_.width(tensor)}}}).front();
}

// Each block's wanted rows, into one tensor.
void Cutter::gather_rows(OpId id, int32_t device, bool for_all) {
  const Op& source = graph_.op(id);
  const TensorId output = light_output(source.output, kWholePass, device, for_all);
  for (size_t b = 0; b < out_.n_worked_on; ++b) {
    if (out_.blocks[b].chunks > 1) continue;  // the same rows as those of its chunks
    const auto block = static_cast<int32_t>(b);
    Op op = source;
    op.inputs = {read_all(source.inputs[0], block, device)};
    op.output = output;
    slices_.emit(std::move(op), device, block);
  }
}

}  // namespace troika::plan
