// Products: along the outputs, along the inputs, or on slices that a device holds already.
#include <algorithm>

#include "troika/plan/cutter.h"

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

}  // namespace

void Cutter::product(OpId id, int32_t block, const Placement& placement) {
  const Op& op = graph_.op(id);
  if (const auto owner = sole_owner(placement, block)) {
    return whole_product(op, block, *owner, stationary(placement, *owner));
  }
  if (placement.cut == Cut::kPaired && ranges_.takes_slices(op)) {
    return slice_product(op, block, placement);
  }
  if (placement.cut == Cut::kK) {
    return partial_products(op, block, placement,
                            to_specs(placement, ranges_.inputs(op, placement)));
  }
  output_slices(op, block, placement);
}

bool Cutter::stationary(const Placement& placement, int32_t device) const {
  for (const Part& part : placement.parts) {
    if (table_.device(part) == device) return part.input_stationary;
  }
  return false;
}

void Cutter::whole_product(const Op& source, int32_t block, int32_t device, bool input_stationary) {
  Op op = source;
  op.inputs = {read_all(source.inputs[0], block, device)};
  op.output = slices_.outputs(source.output, block, {{device, {0, source.weight->rows}}}).front();
  slices_.emit(std::move(op), device, block, input_stationary);
}

void Cutter::output_slices(const Op& source, int32_t block, const Placement& placement) {
  const std::vector<SliceSpec> specs = to_specs(placement, ranges_.outputs(source, placement));
  std::vector<TensorId> inputs;
  for (const SliceSpec& spec : specs) {
    inputs.push_back(read_all(source.inputs[0], block, spec.device));
  }
  const std::vector<TensorId> outputs = slices_.outputs(source.output, block, specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    Op op = source;
    op.inputs = {inputs[i]};
    op.output = outputs[i];
    op.n_begin = specs[i].columns.begin;
    slices_.emit(std::move(op), specs[i].device, block, stationary(placement, specs[i].device));
  }
}

// Along K on the slices that the devices hold already.
void Cutter::slice_product(const Op& source, int32_t block, const Placement& placement) {
  const std::vector<SliceSpec> held = slices_.shared(source.inputs[0], block);
  const bool aligned = std::all_of(held.begin(), held.end(), [&](const SliceSpec& spec) {
    return spec.columns.begin % ProductRanges::block_of(source) == 0;
  });
  if (held.size() == 1) {
    return whole_product(source, block, held.front().device,
                         stationary(placement, held.front().device));
  }
  if (held.empty() || !aligned) return output_slices(source, block, placement);
  partial_products(source, block, placement, held);
}

void Cutter::partial_products(const Op& source, int32_t block, const Placement& placement,
                              const std::vector<SliceSpec>& specs) {
  if (specs.size() == 1) {
    return whole_product(source, block, specs.front().device,
                         stationary(placement, specs.front().device));
  }
  for (const SliceSpec& spec : specs) {
    Op op = source;
    op.inputs = {read(source.inputs[0], block, spec.device, spec.columns)};
    op.output = slices_.partial_sum(source.output, block, spec.device);
    op.k_begin = spec.columns.begin;
    slices_.emit(std::move(op), spec.device, block, stationary(placement, spec.device));
  }
}

}  // namespace troika::plan
