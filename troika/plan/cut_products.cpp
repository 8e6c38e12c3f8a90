// Products: along the outputs, along the inputs, or on slices that a device holds already.
#include <algorithm>
#include <numeric>

#include "troika/plan/cutter.h"

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

// Borders are multiples of this where nothing asks for more and the width allows it.
constexpr int64_t kLeastGrain = 32;
// Borders finer than this would serve no device.
constexpr int64_t kLargestGrain = 256;

// Multiples at which outputs or inputs are cut: the devices' tiles, unless that leaves too few.
int64_t grain(int64_t total, int64_t tile, int64_t least, size_t parts) {
  const int64_t whole = std::lcm(tile, least);
  return total >= whole * static_cast<int64_t>(parts) ? whole : least;
}

int64_t least_grain(int64_t width) { return width % kLeastGrain == 0 ? kLeastGrain : 1; }

// Inputs of a product are cut between the blocks in which its weight's rows are stored.
int64_t block_of(const Op& product) { return model::traits(product.weight->type).block_weights; }

}  // namespace

int64_t Cutter::block_of_readers(TensorId tensor) const {
  int64_t block = 1;
  for (const OpId id : readers_[static_cast<size_t>(tensor)]) {
    const Op& op = graph_.op(id);
    if (op.kind == OpKind::kMatMul && takes_slices(op)) block = std::lcm(block, block_of(op));
    if (op.kind == OpKind::kRope || op.kind == OpKind::kSiluMul || op.kind == OpKind::kAttention) {
      block = std::lcm(block, block_of_readers(op.output));
    }
  }
  return block;
}

// Inputs that a product takes as its device's slice of the attention or of the MLP.
bool Cutter::takes_slices(const Op& op) const {
  const OpKind before = graph_.op(graph_.tensor(op.inputs[0]).producer).kind;
  return before == OpKind::kAttention || before == OpKind::kSiluMul;
}

std::optional<Cutter::HeadUse> Cutter::head_use(TensorId tensor) const {
  for (const OpId id : readers_[static_cast<size_t>(tensor)]) {
    const Op& op = graph_.op(id);
    if (op.kind == OpKind::kKvWrite) return HeadUse{op.heads.head_dim, true};
    if (op.kind == OpKind::kAttention) return HeadUse{op.heads.head_dim, false};
    if (op.kind == OpKind::kRope) return head_use(op.output);
  }
  return std::nullopt;
}

int64_t Cutter::common_tile(const Placement& placement, int64_t device::DeviceInfo::*tile) const {
  int64_t common = 1;
  for (const Part& part : placement.parts) {
    common = std::lcm(common, infos_[static_cast<size_t>(table_.device(part))].*tile);
    if (common > kLargestGrain) return kLargestGrain;
  }
  return common;
}

std::vector<Range> Cutter::output_ranges(const Op& op, const Placement& placement) const {
  const std::vector<double> shares = shares_of(placement);
  const int64_t outputs = op.weight->rows;
  if (const auto use = head_use(op.output)) {
    const int64_t heads = outputs / use->head_dim;
    std::vector<Range> ranges;
    if (placement.op.empty()) {
      const HeadSplit both = attention_heads(op.layer, shares);
      ranges = use->is_kv ? both.kv : both.query;
    } else {
      ranges = split(heads, 1, shares);
    }
    for (Range& range : ranges) {
      range = {range.begin * use->head_dim, range.end * use->head_dim};
    }
    return ranges;
  }
  // What follows may take these columns as slices of its inputs.
  const int64_t tile = std::lcm(common_tile(placement, &device::DeviceInfo::n_tile),
                                common_tile(placement, &device::DeviceInfo::k_tile));
  const int64_t least = std::lcm(block_of_readers(op.output), least_grain(outputs));
  return split(outputs, grain(outputs, std::min(tile, kLargestGrain), least, shares.size()),
               shares);
}

std::vector<Range> Cutter::input_ranges(const Op& op, const Placement& placement) const {
  const int64_t inputs = op.weight->cols;
  const int64_t least = std::lcm(block_of(op), least_grain(inputs));
  const int64_t tile = common_tile(placement, &device::DeviceInfo::k_tile);
  const std::vector<double> shares = shares_of(placement);
  return split(inputs, grain(inputs, tile, least, shares.size()), shares);
}

HeadSplit Cutter::attention_heads(int32_t layer, std::span<const double> shares) const {
  const auto found = std::find_if(graph_.ops.begin(), graph_.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kAttention && op.layer == layer;
  });
  if (found == graph_.ops.end()) {
    return split_heads(graph_.n_kv_heads, graph_.n_kv_heads, 1, shares);
  }
  const int64_t heads = found->heads.n_heads;
  const int64_t head_dim = found->heads.head_dim;
  // As many heads together as the product behind them can take a slice of, if there are enough.
  const int64_t together = std::lcm(block_of_readers(found->output), head_dim) / head_dim;
  return split_heads(heads, graph_.n_kv_heads, grain(heads, together, 1, shares.size()), shares);
}

void Cutter::product(OpId id, int32_t block, const Placement& placement) {
  const Op& op = graph_.op(id);
  if (const auto owner = sole_owner(placement, block)) {
    return whole_product(op, block, *owner, stationary(placement, *owner));
  }
  if (placement.cut == Cut::kPaired && takes_slices(op)) {
    return slice_product(op, block, placement);
  }
  if (placement.cut == Cut::kK) {
    return partial_products(op, block, placement, to_specs(placement, input_ranges(op, placement)));
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
  const std::vector<SliceSpec> specs = to_specs(placement, output_ranges(source, placement));
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
    return spec.columns.begin % block_of(source) == 0;
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
