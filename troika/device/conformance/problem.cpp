#include "troika/device/conformance/problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "troika/model/quantize.h"

namespace troika::device::conformance {
namespace {

using graph::Op;
using graph::OpKind;
using graph::RowCount;
using graph::TensorId;

constexpr double kRopeBase = 10000;
constexpr float kNormEps = 1e-5f;
constexpr size_t kWeightAlignment = 64;
// Cells of the KV cache that no token has: finite, as in a cache whose blocks were used before, and
// so large that nobody reads one unnoticed. A half float holds it exactly.
constexpr float kStaleCell = 30000;

std::vector<double> inv_freq(int64_t rope_dim) {
  std::vector<double> angles;
  for (int64_t i = 0; i < rope_dim / 2; ++i) {
    angles.push_back(
        std::pow(kRopeBase, -2.0 * static_cast<double>(i) / static_cast<double>(rope_dim)));
  }
  return angles;
}

int64_t total_rows(const SequencePlan& sequence) {
  int64_t rows = sequence.history;
  for (const int64_t chunk : sequence.chunks) rows += chunk;
  return rows;
}

}  // namespace

int64_t Pass::rows_needed() const {
  return std::max(n_rows(), first_logit_row + static_cast<int64_t>(logit_rows.size()));
}

ProblemBuilder::ProblemBuilder(std::string_view seed)
    : problem_(std::make_shared<Problem>()), random_(seed) {
  problem_->program.graph = &problem_->graph;
  problem_->graph.n_vocab = n_vocab_;
}

int64_t ProblemBuilder::width(TensorId tensor) const {
  return problem_->graph.tensor(tensor).width;
}
RowCount ProblemBuilder::rows(TensorId tensor) const { return problem_->graph.tensor(tensor).rows; }

void ProblemBuilder::kv_cache(KvType type, int64_t n_layers, int64_t n_kv_heads, int64_t head_dim) {
  KvLayout& layout = problem_->kv.layout;
  layout.type = type;
  layout.n_layers = problem_->graph.n_layers = n_layers;
  layout.n_kv_heads = problem_->graph.n_kv_heads = n_kv_heads;
  layout.head_dim = problem_->graph.head_dim = head_dim;
}

TensorId ProblemBuilder::add_tensor(int64_t tensor_width, RowCount tensor_rows) {
  graph::Tensor tensor;
  const auto id = static_cast<TensorId>(problem_->graph.tensors.size());
  tensor.name = fmt::format("t{}", id);
  tensor.width = tensor_width;
  tensor.rows = tensor_rows;
  problem_->graph.tensors.push_back(std::move(tensor));
  return id;
}

TensorId ProblemBuilder::input(int64_t tensor_width, Spread spread, RowCount tensor_rows) {
  const TensorId id = add_tensor(tensor_width, tensor_rows);
  problem_->inputs.push_back(id);
  spreads_.push_back(spread);
  return id;
}

TensorId ProblemBuilder::rope_table_input(int64_t rope_dim) {
  problem_->graph.rope_inv_freq = inv_freq(rope_dim);
  rope_input_ = input(rope_dim);
  return rope_input_;
}

TensorId ProblemBuilder::frame(int64_t tensor_width) {
  return add_tensor(tensor_width, RowCount::kTokens);
}

TensorId ProblemBuilder::window(TensorId of, int64_t begin, int64_t tensor_width) {
  const TensorId id = add_tensor(tensor_width, rows(of));
  graph::Tensor& tensor = problem_->graph.tensors[static_cast<size_t>(id)];
  tensor.window_of = of;
  tensor.window_begin = begin;
  return id;
}

TensorId ProblemBuilder::add_op(Op op, int64_t tensor_width, RowCount tensor_rows) {
  graph::Graph& graph = problem_->graph;
  Program& program = problem_->program;
  const auto id = static_cast<graph::OpId>(graph.ops.size());
  op.output = std::exchange(target_, -1);
  if (op.output < 0) op.output = add_tensor(tensor_width, tensor_rows);
  graph::Tensor* written = &graph.tensors[static_cast<size_t>(op.output)];
  written->producer = id;
  if (written->window_of >= 0) {
    graph::Tensor& root = graph.tensors[static_cast<size_t>(written->window_of)];
    if (root.producer < 0) root.producer = id;
  }
  std::vector<TensorId> used = op.inputs;
  used.push_back(op.output);
  for (const TensorId tensor : used) {
    if (std::find(program.tensors.begin(), program.tensors.end(), tensor) ==
        program.tensors.end()) {
      program.tensors.push_back(tensor);
    }
  }
  program.ops.push_back(id);
  const TensorId result = op.output;
  graph.ops.push_back(std::move(op));
  return result;
}

const model::Weight* ProblemBuilder::add_weight(model::TensorType type, int64_t n, int64_t k,
                                                float scale) {
  // On a cache line, as those of a model.
  const std::vector<std::byte> bytes = random_.weights(type, n, k, scale);
  std::vector<std::byte>& stored = problem_->stored.emplace_back(bytes.size() + kWeightAlignment);
  void* aligned = stored.data();
  size_t room = stored.size();
  std::align(kWeightAlignment, bytes.size(), aligned, room);
  std::memcpy(aligned, bytes.data(), bytes.size());
  model::Weight weight;
  weight.name = fmt::format("w{}", problem_->weights.size());
  weight.type = type;
  weight.rows = n;
  weight.cols = k;
  weight.data = static_cast<const std::byte*>(aligned);
  problem_->weights.push_back(std::move(weight));
  return &problem_->weights.back();
}

TensorId ProblemBuilder::embed(model::TensorType type, int64_t n_vocab, int64_t tensor_width) {
  n_vocab_ = problem_->graph.n_vocab = n_vocab;
  Op op;
  op.kind = OpKind::kEmbed;
  op.weight = add_weight(type, n_vocab, tensor_width, 1);
  return add_op(std::move(op), tensor_width, RowCount::kTokens);
}

TensorId ProblemBuilder::rope_table(int64_t rope_dim) {
  problem_->graph.rope_inv_freq = inv_freq(rope_dim);
  Op op;
  op.kind = OpKind::kRopeTable;
  return add_op(std::move(op), rope_dim, RowCount::kTokens);
}

TensorId ProblemBuilder::rms_norm(TensorId x) {
  Op op;
  op.kind = OpKind::kRmsNorm;
  op.stage = graph::Stage::kG1;
  op.layer = 0;
  op.inputs = {x};
  op.weight = add_weight(model::TensorType::kF32, 1, width(x), 1);
  op.eps = kNormEps;
  return add_op(std::move(op), width(x), rows(x));
}

TensorId ProblemBuilder::mat_mul(TensorId x, model::TensorType type, int64_t n, int64_t k,
                                 WeightSlice slice) {
  Op op;
  op.kind = OpKind::kMatMul;
  op.stage = graph::Stage::kG1;
  op.layer = 0;
  op.inputs = {x};
  op.weight = add_weight(type, n, k, 1 / std::sqrt(static_cast<float>(width(x))));
  op.n_begin = slice.n_begin;
  op.k_begin = slice.k_begin;
  return add_op(std::move(op), slice.n > 0 ? slice.n : n, rows(x));
}

TensorId ProblemBuilder::rope(TensorId x, TensorId table, const graph::HeadShape& heads) {
  Op op;
  op.kind = OpKind::kRope;
  op.stage = graph::Stage::kG1;
  op.layer = 0;
  op.inputs = {x, table};
  op.heads = heads;
  return add_op(std::move(op), width(x), RowCount::kTokens);
}

TensorId ProblemBuilder::kv_write(TensorId k, TensorId v, const graph::HeadShape& heads,
                                  int32_t layer) {
  Op op;
  op.kind = OpKind::kKvWrite;
  op.stage = graph::Stage::kG1;
  op.layer = layer;
  op.inputs = {k, v};
  op.heads = heads;
  return add_op(std::move(op), 0, RowCount::kTokens);
}

TensorId ProblemBuilder::attention(TensorId q, TensorId kv, const graph::HeadShape& heads,
                                   int32_t layer) {
  Op op;
  op.kind = OpKind::kAttention;
  op.stage = graph::Stage::kAttention;
  op.layer = layer;
  op.inputs = {q, kv >= 0 ? kv : add_tensor(0, RowCount::kTokens)};
  op.heads = heads;
  return add_op(std::move(op), width(q), RowCount::kTokens);
}

TensorId ProblemBuilder::silu_mul(TensorId gate, TensorId up) {
  Op op;
  op.kind = OpKind::kSiluMul;
  op.stage = graph::Stage::kG2;
  op.layer = 0;
  op.inputs = {gate, up};
  return add_op(std::move(op), width(gate), RowCount::kTokens);
}

TensorId ProblemBuilder::add(std::vector<TensorId> terms) {
  Op op;
  op.kind = OpKind::kAdd;
  op.stage = graph::Stage::kG2;
  op.layer = 0;
  op.inputs = std::move(terms);
  const int64_t n = width(op.inputs[0]);
  return add_op(std::move(op), n, RowCount::kTokens);
}

TensorId ProblemBuilder::concat(std::vector<TensorId> parts) {
  Op op;
  op.kind = OpKind::kConcat;
  op.stage = graph::Stage::kG2;
  op.layer = 0;
  int64_t n = 0;
  for (const TensorId part : parts) n += width(part);
  op.inputs = std::move(parts);
  return add_op(std::move(op), n, RowCount::kTokens);
}

TensorId ProblemBuilder::gather_rows(TensorId x) {
  Op op;
  op.kind = OpKind::kGatherRows;
  op.stage = graph::Stage::kHead;
  op.inputs = {x};
  return add_op(std::move(op), width(x), RowCount::kLogits);
}

void ProblemBuilder::output(TensorId tensor) { problem_->program.outputs.push_back(tensor); }

void ProblemBuilder::make_block_tables(const BatchPlan& batch) {
  int64_t blocks = 0;
  for (const SequencePlan& sequence : batch.sequences) {
    const int64_t n = (total_rows(sequence) + kKvBlockTokens - 1) / kKvBlockTokens;
    std::vector<int32_t> table;
    for (int64_t i = 0; i < n; ++i) table.push_back(static_cast<int32_t>(blocks++));
    problem_->block_tables.push_back(std::move(table));
  }
  // One block belongs to nobody.
  problem_->kv.layout.n_blocks = blocks + 1;
  if (batch.contiguous_blocks) return;
  std::vector<int32_t> order;
  for (int64_t i = 0; i <= blocks; ++i) order.push_back(static_cast<int32_t>(i));
  for (int64_t i = blocks; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random_.below(i + 1))]);
  }
  for (std::vector<int32_t>& table : problem_->block_tables) {
    for (int32_t& block : table) block = order[static_cast<size_t>(block)];
  }
}

void ProblemBuilder::fill_kv(const BatchPlan& batch) {
  KvCells& kv = problem_->kv;
  const KvLayout& layout = kv.layout;
  kv.values.resize(static_cast<size_t>(layout.n_layers * layout.n_kv_heads * 2 * layout.n_blocks *
                                       layout.block_elements()));
  for (size_t i = 0; i < kv.values.size(); ++i)
    kv.values[i] = i % 2 == 0 ? kStaleCell : -kStaleCell;
  for (int64_t layer = 0; layer < layout.n_layers; ++layer) {
    for (int64_t head = 0; head < layout.n_kv_heads; ++head) {
      for (size_t s = 0; s < batch.sequences.size(); ++s) {
        const SequencePlan& sequence = batch.sequences[s];
        const int64_t tokens = batch.keys_written ? total_rows(sequence) : sequence.history;
        for (int64_t t = 0; t < tokens * 2; ++t) {
          const auto block = problem_->block_tables[s][static_cast<size_t>(t / 2 / kKvBlockTokens)];
          const size_t at = kv.index(layer, head, t % 2, block, t / 2 % kKvBlockTokens);
          for (int64_t d = 0; d < layout.head_dim; ++d) {
            const float value = random_.normal();
            kv.values[at + static_cast<size_t>(d)] =
                layout.type == KvType::kF32 ? value : model::f16_to_f32(model::f32_to_f16(value));
          }
        }
      }
    }
  }
}

void ProblemBuilder::fill_inputs(Pass& pass) {
  for (size_t i = 0; i < problem_->inputs.size(); ++i) {
    const TensorId id = problem_->inputs[i];
    const int64_t n = rows(id) == RowCount::kTokens ? pass.n_rows()
                                                    : static_cast<int64_t>(pass.logit_rows.size());
    std::vector<float> values = random_.activations(n, width(id), spreads_[i]);
    if (id == rope_input_) {
      auto value = values.begin();
      for (const int32_t position : pass.positions) {
        for (const double frequency : problem_->graph.rope_inv_freq) {
          *value++ = static_cast<float>(std::cos(position * frequency));
          *value++ = static_cast<float>(std::sin(position * frequency));
        }
      }
    }
    pass.inputs.push_back(std::move(values));
  }
}

void ProblemBuilder::make_passes(const BatchPlan& batch) {
  size_t n_passes = 0;
  for (const SequencePlan& sequence : batch.sequences) {
    n_passes = std::max(n_passes, sequence.chunks.size());
  }
  std::vector<int64_t> lengths;
  for (const SequencePlan& sequence : batch.sequences) lengths.push_back(sequence.history);
  for (size_t p = 0; p < n_passes; ++p) {
    Pass pass;
    pass.logit_rows = batch.logit_rows;
    pass.first_logit_row = batch.first_logit_row;
    for (size_t s = 0; s < batch.sequences.size(); ++s) {
      const std::vector<int64_t>& chunks = batch.sequences[s].chunks;
      const int64_t n = p < chunks.size() ? chunks[p] : 0;
      if (n == 0) continue;
      pass.sequences.push_back({pass.n_rows(), n, lengths[s], problem_->block_tables[s].data()});
      for (int64_t i = 0; i < n; ++i) {
        pass.tokens.push_back(static_cast<int32_t>(random_.below(n_vocab_)));
        pass.positions.push_back(static_cast<int32_t>(lengths[s]++));
      }
      if (batch.logit_rows.empty()) {
        pass.logit_rows.push_back(static_cast<int32_t>(pass.n_rows() - 1));
      }
    }
    fill_inputs(pass);
    problem_->passes.push_back(std::move(pass));
  }
}

std::shared_ptr<Problem> ProblemBuilder::finish(const BatchPlan& batch) {
  make_block_tables(batch);
  fill_kv(batch);
  make_passes(batch);
  return std::move(problem_);
}

}  // namespace troika::device::conformance
