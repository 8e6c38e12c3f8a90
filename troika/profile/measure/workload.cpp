#include "troika/profile/measure/workload.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace troika::profile {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

constexpr int64_t kAlignment = 64;
// Far above the activations of a pass of any model.
constexpr int64_t kMaxWidth = int64_t{1} << 24;

int64_t round_up(int64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

// Small, neither zero nor all alike, and the same in every run.
void fill(std::byte* data, int64_t bytes) {
  auto* values = reinterpret_cast<float*>(data);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17 - 8) / 64;
}

}  // namespace

TensorId Workload::add_tensor(int64_t width) {
  const auto id = static_cast<TensorId>(own_.tensors.size());
  graph::Tensor tensor;
  tensor.name = fmt::format("t{}", id);
  tensor.width = width;
  own_.tensors.push_back(std::move(tensor));
  return id;
}

TensorId Workload::add_op(Op op, int64_t width) {
  const auto id = static_cast<graph::OpId>(own_.ops.size());
  op.stage = graph::Stage::kG1;
  op.layer = std::max(op.layer, 0);
  op.output = add_tensor(width);
  own_.tensors.back().producer = id;
  program_.ops.push_back(id);
  program_.outputs.push_back(op.output);
  own_.ops.push_back(std::move(op));
  return program_.outputs.back();
}

Result<std::shared_ptr<Workload>> Workload::products(std::span<const graph::WeightSlice> slices,
                                                     const WorkloadRows& rows, Order order) {
  const std::shared_ptr<Workload> made(new Workload);
  for (const graph::WeightSlice& slice : slices) {
    Op op;
    op.kind = OpKind::kMatMul;
    op.inputs = {made->add_tensor(slice.k)};
    op.weight = slice.weight;
    op.n_begin = slice.n_begin;
    op.k_begin = slice.k_begin;
    made->add_op(std::move(op), slice.n);
  }
  made->program_.input_stationary = order == Order::kInputInPlace;
  RETURN_IF_ERROR(made->finish(rows, device::KvType::kF32));
  return made;
}

Result<std::shared_ptr<Workload>> Workload::attention(const AttentionPoint& point, int64_t copies,
                                                      const WorkloadRows& rows) {
  const std::shared_ptr<Workload> made(new Workload);
  graph::HeadShape heads;
  heads.n_heads = point.n_heads;
  heads.group = point.n_heads / point.n_kv_heads;
  heads.head_dim = point.head_dim;
  heads.rope_dim = point.head_dim;
  heads.scale = 1 / std::sqrt(static_cast<float>(point.head_dim));
  made->own_.n_layers = copies;
  made->own_.n_kv_heads = point.n_kv_heads;
  made->own_.head_dim = point.head_dim;
  for (int32_t layer = 0; layer < copies; ++layer) {
    Op op;
    op.kind = OpKind::kAttention;
    op.layer = layer;
    op.inputs = {made->add_tensor(point.n_heads * point.head_dim), made->add_tensor(0)};
    op.heads = heads;
    made->add_op(std::move(op), point.n_heads * point.head_dim);
  }
  RETURN_IF_ERROR(
      made->finish(rows, point.kv_type == "f16" ? device::KvType::kF16 : device::KvType::kF32));
  return made;
}

Result<std::shared_ptr<Workload>> Workload::elementwise(OpKind kind, int64_t width,
                                                        const WorkloadRows& rows) {
  const std::shared_ptr<Workload> made(new Workload);
  Op op;
  op.kind = kind;
  op.inputs = {made->add_tensor(width)};
  if (kind == OpKind::kAdd || kind == OpKind::kSiluMul) {
    op.inputs.push_back(made->add_tensor(width));
  }
  if (kind == OpKind::kRmsNorm) {
    made->ones_.assign(static_cast<size_t>(width), 1.0f);
    made->norm_weight_ = {"ones", model::TensorType::kF32, 1, width,
                          reinterpret_cast<const std::byte*>(made->ones_.data())};
    op.weight = &made->norm_weight_;
    op.eps = 1e-5f;
  }
  made->add_op(std::move(op), width);
  RETURN_IF_ERROR(made->finish(rows, device::KvType::kF32));
  return made;
}

Result<std::shared_ptr<Workload>> Workload::layer(const graph::Graph& graph, int32_t layer,
                                                  device::KvType kv_type,
                                                  const WorkloadRows& rows) {
  const std::shared_ptr<Workload> made(new Workload);
  made->program_.graph = &graph;
  std::set<TensorId> read_later;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.layer == layer) made->program_.ops.push_back(static_cast<graph::OpId>(i));
    if (op.layer != layer) read_later.insert(op.inputs.begin(), op.inputs.end());
  }
  for (const graph::OpId id : made->program_.ops) {
    const TensorId output = graph.op(id).output;
    if (read_later.count(output) > 0) made->program_.outputs.push_back(output);
  }
  RETURN_IF_ERROR(made->finish(rows, kv_type));
  return made;
}

void Workload::list_tensors() {
  const auto note = [this](TensorId id) {
    if (program_.index_of(id) == program_.tensors.size()) program_.tensors.push_back(id);
  };
  for (const graph::OpId id : program_.ops) {
    for (const TensorId input : program_.graph->op(id).inputs) note(input);
    note(program_.graph->op(id).output);
  }
}

Status Workload::allocate(int64_t rows) {
  std::vector<int64_t> offsets;
  int64_t bytes = kAlignment;
  for (const TensorId id : program_.tensors) {
    const graph::Tensor& tensor = program_.graph->tensor(id);
    if (tensor.width > kMaxWidth) {
      return make_error(ErrorCode::kUnsupported, "a row of {} values is too wide to be measured",
                        tensor.width);
    }
    offsets.push_back(bytes);
    bytes += rows * round_up(tensor.width * graph::dtype_bytes(tensor.type));
  }
  ASSIGN_OR_RETURN(memory_, pool_.allocate("profile", bytes));
  for (size_t i = 0; i < offsets.size(); ++i) {
    const graph::Tensor& tensor = program_.graph->tensor(program_.tensors[i]);
    const int64_t stride = round_up(tensor.width * graph::dtype_bytes(tensor.type));
    views_.push_back({memory_.data() + offsets[i], stride});
    const auto writes = [&](graph::OpId id) {
      return program_.graph->op(id).output == program_.tensors[i];
    };
    if (std::none_of(program_.ops.begin(), program_.ops.end(), writes)) {
      fill(views_.back().data, rows * stride);
    }
  }
  return {};
}

void Workload::make_batch(const WorkloadRows& rows, device::KvType kv_type) {
  tokens_.assign(static_cast<size_t>(rows.rows), 0);
  for (int64_t i = 0; i < rows.rows; ++i) {
    positions_.push_back(static_cast<int32_t>(rows.depth + i));
  }
  const int64_t blocks =
      (rows.depth + rows.max_rows + device::kKvBlockTokens - 1) / device::kKvBlockTokens;
  for (int64_t i = 0; i < blocks; ++i) block_table_.push_back(static_cast<int32_t>(i));
  sequences_ = {{0, rows.rows, rows.depth, block_table_.data()}};
  batch_.n_rows = rows.rows;
  batch_.tokens = tokens_;
  batch_.positions = positions_;
  batch_.sequences = sequences_;
  device::KvLayout& layout = batch_.kv_layout;
  layout.type = kv_type;
  layout.n_layers = program_.graph->n_layers;
  layout.n_kv_heads = program_.graph->n_kv_heads;
  layout.head_dim = program_.graph->head_dim;
  layout.n_blocks = blocks + 1;
}

Status Workload::finish(const WorkloadRows& rows, device::KvType kv_type) {
  if (program_.graph == nullptr) program_.graph = &own_;
  program_.max_rows = rows.max_rows;
  program_.sole_device = true;
  list_tensors();
  RETURN_IF_ERROR(allocate(rows.max_rows));
  make_batch(rows, kv_type);
  ASSIGN_OR_RETURN(kv_,
                   pool_.allocate("profile", std::max(batch_.kv_layout.total_bytes(), kAlignment)));
  // What was never written has no memory of its own, and is read from a cache.
  fill(kv_.data(), batch_.kv_layout.total_bytes());
  batch_.kv = kv_.data();
  return {};
}

bool Workload::fits(const device::Device& device) const {
  return std::all_of(program_.ops.begin(), program_.ops.end(),
                     [&](graph::OpId op) { return device.supports(*program_.graph, op); });
}

double Workload::activation_bytes() const {
  double bytes = 0;
  for (const graph::OpId id : program_.ops) {
    const Op& op = program_.graph->op(id);
    const auto add = [&](TensorId tensor) {
      bytes += static_cast<double>(program_.graph->tensor(tensor).width *
                                   graph::dtype_bytes(program_.graph->tensor(tensor).type)) *
               static_cast<double>(batch_.n_rows);
    };
    for (const TensorId input : op.inputs) add(input);
    add(op.output);
  }
  return bytes;
}

}  // namespace troika::profile
