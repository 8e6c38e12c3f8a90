#include "troika/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "troika/graph/arch/architectures.h"

namespace troika::graph {

std::string_view to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kEmbed:
      return "embed";
    case OpKind::kRopeTable:
      return "rope_table";
    case OpKind::kRmsNorm:
      return "rms_norm";
    case OpKind::kMatMul:
      return "mat_mul";
    case OpKind::kRope:
      return "rope";
    case OpKind::kKvWrite:
      return "kv_write";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kSiluMul:
      return "silu_mul";
    case OpKind::kAdd:
      return "add";
    case OpKind::kConcat:
      return "concat";
    case OpKind::kGatherRows:
      return "gather_rows";
  }
  return "";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kInput:
      return "input";
    case Stage::kG1:
      return "G1";
    case Stage::kAttention:
      return "A";
    case Stage::kG2:
      return "G2";
    case Stage::kHead:
      return "head";
  }
  return "";
}

Result<Graph> build(const model::Model& model) {
  const std::string& wanted = model.hyper_parameters().architecture;
  std::string known;
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == wanted) return architecture.build(model);
    known += known.empty() ? "" : ", ";
    known += architecture.name;
  }
  return make_error(ErrorCode::kUnsupported, "unsupported architecture \"{}\": supported are {}",
                    wanted, known);
}

TensorId Graph::memory_of(TensorId id) const {
  while (tensor(id).window_of >= 0) id = tensor(id).window_of;
  return id;
}

bool Graph::overlap(TensorId a, TensorId b) const {
  if (memory_of(a) != memory_of(b)) return false;
  const auto begin_of = [this](TensorId id) {
    int64_t begin = 0;
    for (; tensor(id).window_of >= 0; id = tensor(id).window_of) begin += tensor(id).window_begin;
    return begin;
  };
  return begin_of(a) < begin_of(b) + tensor(b).width && begin_of(b) < begin_of(a) + tensor(a).width;
}

WeightSlice weight_slice(const Graph& graph, const Op& product) {
  return {product.weight, product.n_begin, graph.tensor(product.output).width, product.k_begin,
          graph.tensor(product.inputs[0]).width};
}

const std::byte* row_of(const WeightSlice& slice, int64_t n) {
  const model::Weight& weight = *slice.weight;
  return weight.data + (slice.n_begin + n) * weight.row_bytes() +
         model::row_bytes(weight.type, slice.k_begin);
}

std::vector<std::byte> gather_rows(const WeightSlice& slice) {
  const int64_t row = model::row_bytes(slice.weight->type, slice.k);
  std::vector<std::byte> rows(static_cast<size_t>(slice.n * row));
  for (int64_t n = 0; n < slice.n; ++n) {
    std::memcpy(rows.data() + n * row, row_of(slice, n), static_cast<size_t>(row));
  }
  return rows;
}

Graph first_layers(const Graph& graph, int64_t n_layers) {
  Graph cut = graph;
  cut.n_layers = std::min(n_layers, graph.n_layers);
  cut.ops.clear();
  // What the head reads of the last layer it now reads of the last one kept.
  TensorId residual = -1;
  for (const Op& source : graph.ops) {
    if (source.layer >= cut.n_layers) continue;
    Op op = source;
    if (op.kind == OpKind::kGatherRows) op.inputs = {residual};
    const bool carries_on = op.kind == OpKind::kEmbed || op.kind == OpKind::kAdd;
    if (carries_on) residual = op.output;
    cut.tensors[static_cast<size_t>(op.output)].producer = static_cast<OpId>(cut.ops.size());
    cut.ops.push_back(std::move(op));
  }
  return cut;
}

int64_t macs_per_row(const Graph& graph, OpId id, int64_t keys) {
  const Op& op = graph.op(id);
  switch (op.kind) {
    case OpKind::kMatMul:
      return graph.tensor(op.output).width * graph.tensor(op.inputs[0]).width;
    case OpKind::kAttention:
      return 2 * op.heads.n_heads * op.heads.head_dim * keys;
    default:
      return 0;
  }
}

int64_t weight_bytes(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (op.weight == nullptr) return 0;
  if (op.kind == OpKind::kEmbed) return op.weight->row_bytes();
  if (op.kind != OpKind::kMatMul) return op.weight->bytes();
  return graph.tensor(op.output).width *
         model::row_bytes(op.weight->type, graph.tensor(op.inputs[0]).width);
}

}  // namespace troika::graph
