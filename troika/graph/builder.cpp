#include "troika/graph/builder.h"

#include <utility>

namespace troika::graph {

Builder::Builder(const model::Model& model) {
  const model::HyperParameters& hyper = model.hyper_parameters();
  graph_.model = &model;
  graph_.n_layers = hyper.n_layers;
  graph_.n_kv_heads = hyper.n_kv_heads;
  graph_.head_dim = hyper.head_dim;
  graph_.n_vocab = hyper.n_vocab;
}

void Builder::enter(Stage stage, int32_t layer) {
  stage_ = stage;
  layer_ = layer;
}

int64_t Builder::width(TensorId id) const { return id < 0 ? 0 : graph_.tensor(id).width; }

const model::Weight* Builder::weight(std::string_view name, int64_t cols) {
  if (!status_) return nullptr;
  const model::Weight* found = graph_.model->find(name);
  if (found == nullptr) {
    status_ = make_error(ErrorCode::kInvalidData,
                         "the model has no tensor {}: the file is incomplete", name);
  } else if (found->cols != cols) {
    status_ = make_error(ErrorCode::kInvalidData,
                         "tensor {} has {} inputs, but {} are wanted: the file contradicts itself",
                         name, found->cols, cols);
    found = nullptr;
  }
  return found;
}

TensorId Builder::push(Op op, std::string_view name, int64_t tensor_width, RowCount rows) {
  if (!status_) return -1;
  op.stage = stage_;
  op.layer = layer_;
  op.output = static_cast<TensorId>(graph_.tensors.size());
  Tensor tensor;
  tensor.name = layer_ < 0 ? std::string(name) : fmt::format("blk.{}.{}", layer_, name);
  tensor.width = tensor_width;
  tensor.rows = rows;
  tensor.producer = static_cast<OpId>(graph_.ops.size());
  graph_.tensors.push_back(std::move(tensor));
  graph_.ops.push_back(std::move(op));
  return graph_.ops.back().output;
}

TensorId Builder::embed(std::string_view name) {
  Op op;
  op.kind = OpKind::kEmbed;
  const int64_t hidden = graph_.model->hyper_parameters().hidden;
  op.weight = weight(name, hidden);
  return push(std::move(op), "embed", hidden, RowCount::kTokens);
}

TensorId Builder::rope_table(std::vector<double> inv_freq) {
  Op op;
  op.kind = OpKind::kRopeTable;
  graph_.rope_inv_freq = std::move(inv_freq);
  return push(std::move(op), "rope", static_cast<int64_t>(graph_.rope_inv_freq.size()) * 2,
              RowCount::kTokens);
}

TensorId Builder::rms_norm(TensorId x, std::string_view name, float eps) {
  Op op;
  op.kind = OpKind::kRmsNorm;
  op.inputs = {x};
  op.weight = weight(name, width(x));
  op.eps = eps;
  if (status_ && op.weight->type != model::TensorType::kF32) {
    status_ = make_error(ErrorCode::kUnsupported, "norm {} is stored as {}: only F32 is supported",
                         name, model::traits(op.weight->type).name);
  }
  const RowCount rows = x < 0 ? RowCount::kTokens : graph_.tensor(x).rows;
  return push(std::move(op), "norm", width(x), rows);
}

TensorId Builder::mat_mul(TensorId x, std::string_view weight_name, std::string_view name) {
  Op op;
  op.kind = OpKind::kMatMul;
  op.inputs = {x};
  op.weight = weight(weight_name, width(x));
  if (!status_) return -1;
  const int64_t outputs = op.weight->rows;
  return push(std::move(op), name, outputs, graph_.tensor(x).rows);
}

TensorId Builder::rope(TensorId x, TensorId table, const HeadShape& heads) {
  Op op;
  op.kind = OpKind::kRope;
  op.inputs = {x, table};
  op.heads = heads;
  return push(std::move(op), "rope", width(x), RowCount::kTokens);
}

TensorId Builder::kv_write(TensorId k, TensorId v, const HeadShape& heads) {
  Op op;
  op.kind = OpKind::kKvWrite;
  op.inputs = {k, v};
  op.heads = heads;
  return push(std::move(op), "kv", 0, RowCount::kTokens);
}

TensorId Builder::attention(TensorId q, TensorId kv, const HeadShape& heads) {
  Op op;
  op.kind = OpKind::kAttention;
  op.inputs = {q, kv};
  op.heads = heads;
  return push(std::move(op), "attention", width(q), RowCount::kTokens);
}

TensorId Builder::silu_mul(TensorId gate, TensorId up) {
  Op op;
  op.kind = OpKind::kSiluMul;
  op.inputs = {gate, up};
  return push(std::move(op), "silu_mul", width(gate), RowCount::kTokens);
}

TensorId Builder::add(TensorId a, TensorId b) {
  Op op;
  op.kind = OpKind::kAdd;
  op.inputs = {a, b};
  return push(std::move(op), "residual", width(a), RowCount::kTokens);
}

TensorId Builder::gather_rows(TensorId x) {
  Op op;
  op.kind = OpKind::kGatherRows;
  op.inputs = {x};
  return push(std::move(op), "wanted_rows", width(x), RowCount::kLogits);
}

Result<Graph> Builder::finish(TensorId logits) {
  RETURN_IF_ERROR(status_);
  graph_.logits = logits;
  if (width(logits) != graph_.n_vocab) {
    return make_error(
        ErrorCode::kInvalidData,
        "the output matrix has {} rows for a vocabulary of {}: the file contradicts itself",
        width(logits), graph_.n_vocab);
  }
  return std::move(graph_);
}

}  // namespace troika::graph
