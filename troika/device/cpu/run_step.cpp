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
  return c.bindings->batch->row_count(step.rows);
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
  for (int64_t i = 0; i < heads.n_heads; ++i) {
    const int64_t head = heads.first_head + i;
    args.k = row(c, bound.inputs[0], r) + i * heads.head_dim;
    args.v = row(c, bound.inputs[1], r) + i * heads.head_dim;
    args.k_block = batch.kv + layout.head_offset(bound.op->layer, head, 0) + block * block_bytes;
    args.v_block = batch.kv + layout.head_offset(bound.op->layer, head, 1) + block * block_bytes;
    c.kernels->kv_write(args);
  }
}

void concat_row(const StepContext& c, const BoundOp& bound, int64_t r) {
  float* out = row(c, bound.output, r);
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    const int64_t width = c.graph->tensor(bound.op->inputs[i]).width;
    std::memcpy(out, row(c, bound.inputs[i], r), static_cast<size_t>(width) * sizeof(float));
    out += width;
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
      for (size_t i = 2; i < bound.inputs.size(); ++i) {
        c.kernels->add(row(c, bound.output, r), row(c, bound.inputs[i], r), width(),
                       row(c, bound.output, r));
      }
      break;
    case OpKind::kConcat:
      concat_row(c, bound, r);
      break;
    case OpKind::kGatherRows:
      std::memcpy(row(c, bound.output, batch.first_logit_row + r),
                  row(c, bound.inputs[0], batch.logit_rows[static_cast<size_t>(r)]),
                  static_cast<size_t>(width()) * sizeof(float));
      break;
    case OpKind::kMatMul:
    case OpKind::kAttention:
      break;  // steps of their own
  }
}

int64_t rows_per_chunk(int64_t rows, int threads) {
  return std::max<int64_t>(1, rows / (threads * kChunksPerThread));
}

void run_rows_chunk(const Step& step, const StepContext& c, int64_t chunk) {
  const int64_t rows = row_count(step, c);
  const int64_t count = rows_per_chunk(rows, c.threads);
  for (int64_t r = chunk * count; r < std::min(rows, (chunk + 1) * count); ++r) {
    for (const BoundOp& bound : step.ops) run_row(c, bound, r);
  }
}

int64_t outputs_of(const StepContext& c, const BoundOp& product) {
  return c.graph->tensor(product.op->output).width;
}

// Outputs [first, first + count) of one product, all rows; `next` is read after it.
void run_product(const StepContext& c, const BoundOp& bound, int64_t rows, int64_t first,
                 int64_t count, const std::byte* next) {
  MatMulArgs args;
  args.x = row(c, bound.inputs[0], 0);
  args.x_stride = stride(c, bound.inputs[0]);
  args.m = rows;
  args.n = count;
  args.k = c.graph->tensor(bound.op->inputs[0]).width;
  args.w = bound.weights + first * bound.weights_stride;
  args.w_stride = bound.weights_stride;
  args.y = row(c, bound.output, 0) + first;
  args.y_stride = stride(c, bound.output);
  if (bound.add >= 0) {
    args.add = row(c, bound.add, 0) + first;
    args.add_stride = stride(c, bound.add);
  }
  args.scratch = c.scratch;
  if (c.threads == 1) args.next_w = next;  // else it may be another thread's
  c.kernels->matmul(bound.op->weight->type, args);
}

int64_t outputs_per_chunk(int64_t outputs, int threads) {
  if (threads == 1) return outputs;
  const int64_t chunk = ceil_div(outputs, threads * kChunksPerThread);
  return ceil_div(chunk, kOutputGrain) * kOutputGrain;
}

// Chunks are numbered through all products of the step; none spans two of them.
int64_t product_chunk(const Step& step, const StepContext& c) {
  int64_t outputs = 0;
  for (const BoundOp& bound : step.ops) outputs += outputs_of(c, bound);
  return outputs_per_chunk(outputs, c.threads);
}

void run_products_chunk(const Step& step, const StepContext& c, int64_t chunk) {
  const int64_t size = product_chunk(step, c);
  for (size_t i = 0; i < step.ops.size(); ++i) {
    const int64_t n = outputs_of(c, step.ops[i]);
    const int64_t chunks = ceil_div(n, size);
    if (chunk < chunks) {
      const int64_t first = chunk * size;
      const bool last = i + 1 == step.ops.size();
      return run_product(c, step.ops[i], row_count(step, c), first, std::min(size, n - first),
                         last ? c.next_weights : step.ops[i + 1].weights);
    }
    chunk -= chunks;
  }
}

int64_t gated_chunk(const Step& step, const StepContext& c) {
  return outputs_per_chunk(outputs_of(c, step.ops[0]), c.threads);
}

void run_gated_mlp_chunk(const Step& step, const StepContext& c, int64_t chunk) {
  const BoundOp& gate = step.ops[0];
  const BoundOp& up = step.ops[1];
  const BoundOp& out = step.ops[2];
  const int64_t rows = row_count(step, c);
  const int64_t size = gated_chunk(step, c);
  const int64_t first = chunk * size;
  const int64_t count = std::min(size, outputs_of(c, gate) - first);
  run_product(c, gate, rows, first, count, up.weights);
  run_product(c, up, rows, first, count, c.next_weights);
  for (int64_t r = 0; r < rows; ++r) {
    c.kernels->silu_mul(row(c, gate.output, r) + first, row(c, up.output, r) + first, count,
                        row(c, out.output, r) + first);
  }
}

// Query heads of the tensor at hand that share a KV head: all of its group, or what a cut left.
struct HeadGroup {
  int64_t kv_head = 0;     // of the layer
  int64_t first_head = 0;  // of the tensor
  int64_t n_heads = 0;
};

int64_t group_count(const graph::HeadShape& heads) {
  const int64_t last = heads.first_head + heads.n_heads - 1;
  return last / heads.group - heads.first_head / heads.group + 1;
}

HeadGroup head_group(const graph::HeadShape& heads, int64_t index) {
  HeadGroup group;
  group.kv_head = heads.first_head / heads.group + index;
  const int64_t begin = std::max(group.kv_head * heads.group, heads.first_head);
  const int64_t end = std::min((group.kv_head + 1) * heads.group, heads.first_head + heads.n_heads);
  group.first_head = begin - heads.first_head;
  group.n_heads = end - begin;
  return group;
}

// One unit of attention: some rows of one sequence, some query heads of one KV head.
struct AttentionUnit {
  const SequenceView* sequence = nullptr;
  int64_t first_row = 0;  // within the sequence
  int64_t n_rows = 0;
  HeadGroup heads;
};

void run_attention_unit(const StepContext& c, const BoundOp& bound, const AttentionUnit& unit) {
  const BatchView& batch = *c.bindings->batch;
  const graph::HeadShape& heads = bound.op->heads;
  const int64_t first = unit.sequence->first_row + unit.first_row;
  AttentionArgs args;
  args.q = row(c, bound.inputs[0], first) + unit.heads.first_head * heads.head_dim;
  args.q_stride = stride(c, bound.inputs[0]);
  args.n_rows = unit.n_rows;
  args.n_group = unit.heads.n_heads;
  args.head_dim = heads.head_dim;
  args.first_position = unit.sequence->first_position + unit.first_row;
  args.k = batch.kv + batch.kv_layout.head_offset(bound.op->layer, unit.heads.kv_head, 0);
  args.v = batch.kv + batch.kv_layout.head_offset(bound.op->layer, unit.heads.kv_head, 1);
  args.kv_type = batch.kv_layout.type;
  args.block_table = unit.sequence->block_table;
  args.scale = heads.scale;
  args.out = row(c, bound.output, first) + unit.heads.first_head * heads.head_dim;
  args.out_stride = stride(c, bound.output);
  args.scratch = c.scratch;
  c.kernels->attention(args);
}

// How the attention of a batch is cut: tiles of rows, times groups of heads or single heads.
struct AttentionCut {
  int64_t tiles = 0;
  bool by_head = false;
  int64_t units_per_tile = 1;
};

AttentionCut attention_cut(const Step& step, const StepContext& c) {
  const graph::HeadShape& heads = step.ops[0].op->heads;
  AttentionCut cut;
  for (const SequenceView& sequence : c.bindings->batch->sequences) {
    cut.tiles += ceil_div(sequence.n_rows, kAttentionRows);
  }
  // The heads of a group share the reading of keys, unless there would be too few units to go
  // round.
  const int64_t groups = group_count(heads);
  cut.by_head = c.threads > 1 && cut.tiles * groups < c.threads * kChunksPerThread;
  cut.units_per_tile = cut.by_head ? heads.n_heads : groups;
  return cut;
}

void run_attention_chunk(const Step& step, const StepContext& c, int64_t chunk) {
  const graph::HeadShape& heads = step.ops[0].op->heads;
  const std::span<const SequenceView> sequences = c.bindings->batch->sequences;
  const AttentionCut cut = attention_cut(step, c);
  // The last rows of a prompt see the most keys: long units first, short ones fill the gaps.
  int64_t tile = cut.tiles - 1 - chunk / cut.units_per_tile;
  auto sequence = sequences.begin();
  while (tile >= ceil_div(sequence->n_rows, kAttentionRows)) {
    tile -= ceil_div(sequence->n_rows, kAttentionRows);
    ++sequence;
  }
  const int64_t unit_of_tile = chunk % cut.units_per_tile;
  AttentionUnit unit;
  unit.sequence = &*sequence;
  unit.first_row = tile * kAttentionRows;
  unit.n_rows = std::min(kAttentionRows, sequence->n_rows - unit.first_row);
  if (cut.by_head) {
    unit.heads = {(heads.first_head + unit_of_tile) / heads.group, unit_of_tile, 1};
  } else {
    unit.heads = head_group(heads, unit_of_tile);
  }
  run_attention_unit(c, step.ops[0], unit);
}

}  // namespace

int64_t chunk_count(const Step& step, const StepContext& context) {
  const int64_t rows = row_count(step, context);
  if (rows == 0) return 0;
  switch (step.kind) {
    case StepKind::kRows:
      return ceil_div(rows, rows_per_chunk(rows, context.threads));
    case StepKind::kMatMuls: {
      const int64_t size = product_chunk(step, context);
      int64_t chunks = 0;
      for (const BoundOp& bound : step.ops) chunks += ceil_div(outputs_of(context, bound), size);
      return chunks;
    }
    case StepKind::kGatedMlp:
      return ceil_div(outputs_of(context, step.ops[0]), gated_chunk(step, context));
    case StepKind::kAttention: {
      const AttentionCut cut = attention_cut(step, context);
      return cut.tiles * cut.units_per_tile;
    }
  }
  return 0;
}

void run_chunk(const Step& step, const StepContext& context, int64_t chunk) {
  switch (step.kind) {
    case StepKind::kRows:
      run_rows_chunk(step, context, chunk);
      break;
    case StepKind::kMatMuls:
      run_products_chunk(step, context, chunk);
      break;
    case StepKind::kGatedMlp:
      run_gated_mlp_chunk(step, context, chunk);
      break;
    case StepKind::kAttention:
      run_attention_chunk(step, context, chunk);
      break;
  }
}

void run_steps(const std::vector<Step>& steps, const graph::Graph& graph,
               const KernelTable& kernels, const Bindings& bindings, float* scratch) {
  StepContext context;
  context.graph = &graph;
  context.bindings = &bindings;
  context.kernels = &kernels;
  context.scratch = scratch;
  for (const Step& step : steps) {
    const int64_t chunks = chunk_count(step, context);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) run_chunk(step, context, chunk);
  }
}

}  // namespace troika::device::cpu
