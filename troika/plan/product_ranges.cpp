#include "troika/plan/product_ranges.h"

#include <algorithm>
#include <numeric>

namespace troika::plan {
namespace {

using graph::Op;
using graph::OpId;
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

}  // namespace

ProductRanges::ProductRanges(const graph::Graph& graph, const std::vector<std::string>& devices,
                             std::span<const device::DeviceInfo> infos)
    : graph_(graph), devices_(devices), infos_(infos), readers_(graph.tensors.size()) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const auto id = static_cast<OpId>(i);
    if (op.kind == OpKind::kAttention) attention_.try_emplace(op.layer, id);
    for (const TensorId input : op.inputs) readers_[static_cast<size_t>(input)].push_back(id);
  }
}

int64_t ProductRanges::block_of(const Op& product) {
  return model::traits(product.weight->type).block_weights;
}

int64_t ProductRanges::block_of_readers(TensorId tensor) const {
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

bool ProductRanges::takes_slices(const Op& op) const {
  const OpKind before = graph_.op(graph_.tensor(op.inputs[0]).producer).kind;
  return before == OpKind::kAttention || before == OpKind::kSiluMul;
}

std::optional<ProductRanges::HeadUse> ProductRanges::head_use(TensorId tensor) const {
  for (const OpId id : readers_[static_cast<size_t>(tensor)]) {
    const Op& op = graph_.op(id);
    if (op.kind == OpKind::kKvWrite) return HeadUse{op.heads.head_dim, true};
    if (op.kind == OpKind::kAttention) return HeadUse{op.heads.head_dim, false};
    if (op.kind == OpKind::kRope) return head_use(op.output);
  }
  return std::nullopt;
}

int64_t ProductRanges::common_tile(const Placement& placement,
                                   int64_t device::DeviceInfo::*tile) const {
  int64_t common = 1;
  for (const Part& part : placement.parts) {
    const auto device = static_cast<size_t>(device_index(devices_, part));
    common = std::lcm(common, infos_[device].*tile);
    if (common > kLargestGrain) return kLargestGrain;
  }
  return common;
}

std::vector<Range> ProductRanges::outputs(const Op& op, const Placement& placement) const {
  const std::vector<double> shares = placement.shares();
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

std::vector<Range> ProductRanges::inputs(const Op& op, const Placement& placement) const {
  const int64_t inputs = op.weight->cols;
  const int64_t least = std::lcm(block_of(op), least_grain(inputs));
  const int64_t tile = common_tile(placement, &device::DeviceInfo::k_tile);
  const std::vector<double> shares = placement.shares();
  return split(inputs, grain(inputs, tile, least, shares.size()), shares);
}

double ProductRanges::attention_part(graph::OpId attention) const {
  int64_t projection = 0;
  for (const graph::OpId reader : readers_[static_cast<size_t>(graph_.op(attention).output)]) {
    projection += graph::macs_per_row(graph_, reader, 0);
  }
  if (projection == 0) return 0;
  return static_cast<double>(graph::macs_per_row(graph_, attention, kUsualDepth)) /
         static_cast<double>(2 * projection);
}

HeadSplit ProductRanges::attention_heads(int32_t layer, std::span<const double> shares) const {
  const auto found = attention_.find(layer);
  if (found == attention_.end()) {
    return split_heads(graph_.n_kv_heads, graph_.n_kv_heads, 1, 0, shares);
  }
  const Op& attention = graph_.op(found->second);
  const int64_t heads = attention.heads.n_heads;
  const int64_t head_dim = attention.heads.head_dim;
  // As many heads together as the product behind them can take a slice of, if there are enough.
  const int64_t together = std::lcm(block_of_readers(attention.output), head_dim) / head_dim;
  return split_heads(heads, graph_.n_kv_heads, grain(heads, together, 1, shares.size()),
                     attention_part(found->second), shares);
}

}  // namespace troika::plan
