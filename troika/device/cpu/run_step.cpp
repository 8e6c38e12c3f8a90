#include <algorithm>
#include <cmath>
#include <cstring>

#include "troika/device/cpu/step.h"

namespace troika::device::cpu {
namespace {

using graph::Op;
using graph::OpKind;

// Outputs are cut on multiples of this: whole tiles of every kernel, whole cache lines of results.
constexpr int64_t kOutputGrain = 16;
// Chunks per thread: enough to even out threads of unlike speed, few enough that claiming is free.
constexpr int64_t kChunksPerThread = 6;
// Rows of one attention unit: several share the reading of a block of keys.
constexpr int64_t kAttentionRows = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

float* row(const StepContext& c, TensorIndex tensor, int64_t index) {
  const TensorView& view = c.bindings->tensors[static_cast<size_t>(tensor)];
  return reinterpret_cast<float*>(view.data + index * view.row_stride);
}

int64_t stride(const StepContext& c, TensorIndex tensor) {
  return c.bindings->tensors[static_cast<size_t>(tensor)].row_stride /
         static_cast<int64_t>(sizeof(float));
}

int64_t row_count(const Step& step, const StepContext& c) {
  return step.rows == graph::RowCount::kTokens
             ? c.bindings->batch->n_rows
             : static_cast<int64_t>(c.bindings->batch->logit_rows.size());
}

const SequenceView& sequence_of(const BatchView& batch, int64_t row_index) {
  const auto after = std::upper_bound(
      batch.sequences.begin(), batch.sequences.end(), row_index,
      [](int64_t value, const SequenceView& sequence) { return value < sequence.first_row; });
  return *(after - 1);
}

void rope_table_row(const StepContext& c, const BoundOp& bound, int64_t r) {
  float* out = row(c, bound.output, r);
  const double position = c.bindings->batch->positions[static_cast<size_t>(r)];
  for (const double inv_freq : c.graph->rope_inv_freq) {
    *out++ = static_cast<float>(std::cos(position * inv_freq));
    *out++ = static_cast<float>(std::sin(position * inv_freq));
  }
}

void rope_row(const StepContext& c, const BoundOp& bound, int64_t r) {
  const graph::HeadShape& heads = bound.op->heads;
  const float* in = row(c, bound.inputs[0], r);
  float* out = row(c, bound.output, r);
  if (out != in) {
    std::memcpy(out, in, static_cast<size_t>(heads.n_heads * heads.head_dim) * sizeof(float));
  }
  c.kernels->rope(out, heads.n_heads, heads.head_dim, heads.rope_dim, heads.rope_pairs,
                  row(c, bound.inputs[1], r));
}

void kv_write_row(const StepContext& c, const BoundOp& bound, int64_t r) {
  const BatchView& batch = *c.bindings->batch;
  const SequenceView& sequence = sequence_of(batch, r);
  const int64_t position = batch.positions[static_cast<size_t>(r)];
  const int64_t block = sequence.block_table[position / kKvBlockTokens];
  const KvLayout& layout = batch.kv_layout;
  const int64_t block_bytes = layout.block_elements() * kv_type_bytes(layout.type);
  const graph::HeadShape& heads = bound.op->heads;
  KvWriteArgs args;
  args.head_dim = heads.head_dim;
  args.slot = position % kKvBlockTokens;
  args.kv_type = layout.type;
  for (int64_t head = 0; head < heads.n_kv_heads; ++head) {
    args.k = row(c, bound.inputs[0], r) + head * heads.head_dim;
    args.v = row(c, bound.inputs[1], r) + head * heads.head_dim;
    args.k_block = batch.kv + layout.head_offset(bound.op->layer, head, 0) + block * block_bytes;
    args.v_block = batch.kv + layout.head_offset(bound.op->layer, head, 1) + block * block_bytes;
    c.kernels->kv_write(args);
  }
}

void run_row(const StepContext& c, const BoundOp& bound, int64_t r) {
  const BatchView& batch = *c.bindings->batch;
  const Op& op = *bound.op;
  const auto width = [&] { return c.graph->tensor(op.output).width; };
  switch (op.kind) {
    case OpKind::kEmbed: {
      const int64_t token = batch.tokens[static_cast<size_t>(r)];
      c.kernels->dequantize_row(op.weight->type, op.weight->data + token * op.weight->row_bytes(),
                                width(), row(c, bound.output, r));
      break;
    }
    case OpKind::kRopeTable:
      rope_table_row(c, bound, r);
      break;
    case OpKind::kRmsNorm:
      c.kernels->rms_norm(row(c, bound.inputs[0], r),
                          reinterpret_cast<const float*>(op.weight->data), op.eps, width(),
                          row(c, bound.output, r));
      break;
    case OpKind::kRope:
      rope_row(c, bound, r);
      break;
    case OpKind::kKvWrite:
      kv_write_row(c, bound, r);
      break;
    case OpKind::kSiluMul:
      c.kernels->silu_mul(row(c, bound.inputs[0], r), row(c, bound.inputs[1], r), width(),
                          row(c, bound.output, r));
      break;
    case OpKind::kAdd:
      c.kernels->add(row(c, bound.inputs[0], r), row(c, bound.inputs[1], r), width(),
                     row(c, bound.output, r));
      break;
    case OpKind::kGatherRows:
      std::memcpy(row(c, bound.output, r),
                  row(c, bound.inputs[0], batch.logit_rows[static_cast<size_t>(r)]),
                  static_cast<size_t>(width()) * sizeof(float));
      break;
    case OpKind::kMatMul:
    case OpKind::kAttention:
      break;  // steps of their own
  }
}

void run_rows(const Step& step, const StepContext& c) {
  const int64_t rows = row_count(step, c);
  const int64_t chunk = std::max<int64_t>(1, rows / (c.team->size() * kChunksPerThread));
  for (int64_t first = c.team->claim_chunk() * chunk; first < rows;
       first = c.team->claim_chunk() * chunk) {
    for (int64_t r = first; r < std::min(rows, first + chunk); ++r) {
      for (const BoundOp& bound : step.ops) run_row(c, bound, r);
    }
  }
}

// Outputs [first, first + count) of one product, all rows.
void run_product(const StepContext& c, const BoundOp& bound, int64_t rows, int64_t first,
                 int64_t count) {
  const model::Weight& weight = *bound.op->weight;
  MatMulArgs args;
  args.x = row(c, bound.inputs[0], 0);
  args.x_stride = stride(c, bound.inputs[0]);
  args.m = rows;
  args.w = weight.data + first * weight.row_bytes();
  args.w_stride = weight.row_bytes();
  args.n = count;
  args.k = weight.cols;
  args.y = row(c, bound.output, 0) + first;
  args.y_stride = stride(c, bound.output);
  if (bound.add >= 0) {
    args.add = row(c, bound.add, 0) + first;
    args.add_stride = stride(c, bound.add);
  }
  args.scratch = c.scratch;
  c.kernels->matmul(weight.type, args);
}

int64_t outputs_per_chunk(int64_t outputs, int threads) {
  if (threads == 1) return outputs;
  const int64_t chunk = ceil_div(outputs, threads * kChunksPerThread);
  return ceil_div(chunk, kOutputGrain) * kOutputGrain;
}

void run_products(const Step& step, const StepContext& c) {
  const int64_t rows = row_count(step, c);
  if (rows == 0) return;
  int64_t outputs = 0;
  for (const BoundOp& bound : step.ops) outputs += bound.op->weight->rows;
  const int64_t chunk = outputs_per_chunk(outputs, c.team->size());
  // Chunks are numbered through all products of the step; none spans two of them.
  int64_t claimed = c.team->claim_chunk();
  int64_t passed = 0;
  for (const BoundOp& bound : step.ops) {
    const int64_t n = bound.op->weight->rows;
    const int64_t chunks = ceil_div(n, chunk);
    while (claimed < passed + chunks) {
      const int64_t first = (claimed - passed) * chunk;
      run_product(c, bound, rows, first, std::min(chunk, n - first));
      claimed = c.team->claim_chunk();
    }
    passed += chunks;
  }
}

void run_gated_mlp(const Step& step, const StepContext& c) {
  const BoundOp& gate = step.ops[0];
  const BoundOp& up = step.ops[1];
  const BoundOp& out = step.ops[2];
  const int64_t rows = row_count(step, c);
  const int64_t n = gate.op->weight->rows;
  const int64_t chunk = outputs_per_chunk(n, c.team->size());
  for (int64_t first = c.team->claim_chunk() * chunk; first < n;
       first = c.team->claim_chunk() * chunk) {
    const int64_t count = std::min(chunk, n - first);
    run_product(c, gate, rows, first, count);
    run_product(c, up, rows, first, count);
    for (int64_t r = 0; r < rows; ++r) {
      c.kernels->silu_mul(row(c, gate.output, r) + first, row(c, up.output, r) + first, count,
                          row(c, out.output, r) + first);
    }
  }
}

// One unit of attention: some rows of one sequence, some query heads of one KV head.
struct AttentionUnit {
  const SequenceView* sequence = nullptr;
  int64_t first_row = 0;  // within the sequence
  int64_t n_rows = 0;
  int64_t kv_head = 0;
  int64_t first_head = 0;  // within the group
  int64_t n_heads = 0;
};

void run_attention_unit(const StepContext& c, const BoundOp& bound, const AttentionUnit& unit) {
  const BatchView& batch = *c.bindings->batch;
  const graph::HeadShape& heads = bound.op->heads;
  const int64_t group = heads.n_heads / heads.n_kv_heads;
  const int64_t head = unit.kv_head * group + unit.first_head;
  const int64_t first = unit.sequence->first_row + unit.first_row;
  AttentionArgs args;
  args.q = row(c, bound.inputs[0], first) + head * heads.head_dim;
  args.q_stride = stride(c, bound.inputs[0]);
  args.n_rows = unit.n_rows;
  args.n_group = unit.n_heads;
  args.head_dim = heads.head_dim;
  args.first_position = unit.sequence->first_position + unit.first_row;
  args.k = batch.kv + batch.kv_layout.head_offset(bound.op->layer, unit.kv_head, 0);
  args.v = batch.kv + batch.kv_layout.head_offset(bound.op->layer, unit.kv_head, 1);
  args.kv_type = batch.kv_layout.type;
  args.block_table = unit.sequence->block_table;
  args.scale = heads.scale;
  args.out = row(c, bound.output, first) + head * heads.head_dim;
  args.out_stride = stride(c, bound.output);
  args.scratch = c.scratch;
  c.kernels->attention(args);
}

void run_attention(const Step& step, const StepContext& c) {
  const BoundOp& bound = step.ops[0];
  const graph::HeadShape& heads = bound.op->heads;
  const std::span<const SequenceView> sequences = c.bindings->batch->sequences;
  const int64_t group = heads.n_heads / heads.n_kv_heads;
  int64_t tiles = 0;
  for (const SequenceView& sequence : sequences) tiles += ceil_div(sequence.n_rows, kAttentionRows);
  // The heads of a group share the reading of keys, unless there would be too few units to go
  // round.
  const bool split_group =
      c.team->size() > 1 && tiles * heads.n_kv_heads < c.team->size() * kChunksPerThread;
  const int64_t parts = split_group ? group : 1;
  const int64_t units_per_tile = heads.n_kv_heads * parts;

  int64_t claimed = c.team->claim_chunk();
  int64_t passed = 0;
  // The last rows of a prompt see the most keys: long units first, short ones fill the gaps.
  for (auto sequence = sequences.rbegin(); sequence != sequences.rend(); ++sequence) {
    const int64_t own_tiles = ceil_div(sequence->n_rows, kAttentionRows);
    for (; claimed < passed + own_tiles * units_per_tile; claimed = c.team->claim_chunk()) {
      const int64_t local = claimed - passed;
      const int64_t tile = own_tiles - 1 - local / units_per_tile;
      const int64_t head = local % units_per_tile;
      AttentionUnit unit;
      unit.sequence = &*sequence;
      unit.first_row = tile * kAttentionRows;
      unit.n_rows = std::min(kAttentionRows, sequence->n_rows - unit.first_row);
      unit.kv_head = head / parts;
      unit.first_head = split_group ? head % parts : 0;
      unit.n_heads = split_group ? 1 : group;
      run_attention_unit(c, bound, unit);
    }
    passed += own_tiles * units_per_tile;
  }
}

}  // namespace

void run_step(const Step& step, const StepContext& context) {
  switch (step.kind) {
    case StepKind::kRows:
      run_rows(step, context);
      break;
    case StepKind::kMatMuls:
      run_products(step, context);
      break;
    case StepKind::kGatedMlp:
      run_gated_mlp(step, context);
      break;
    case StepKind::kAttention:
      run_attention(step, context);
      break;
  }
}

}  // namespace troika::device::cpu
