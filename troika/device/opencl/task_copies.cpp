#include "troika/device/opencl/task_copies.h"

#include <algorithm>

#include "troika/device/result_check.h"

namespace troika::device::opencl {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

int64_t blocks_for(int64_t tokens) { return (tokens + kKvBlockTokens - 1) / kKvBlockTokens; }

}  // namespace

Crossings find_crossings(const Program& program) {
  const graph::Graph& graph = *program.graph;
  Crossings crossings;
  crossings.sole_device = program.sole_device;
  std::vector<TensorId> written;
  for (const graph::OpId id : program.ops) {
    const Op& op = graph.op(id);
    for (const TensorId input : op.inputs) {
      const size_t at = program.index_of(input);
      const bool own = std::find(written.begin(), written.end(), input) != written.end();
      const bool known =
          std::find(crossings.inputs.begin(), crossings.inputs.end(), at) != crossings.inputs.end();
      if (graph.tensor(input).width == 0 || own || known || program.sole_device) continue;
      crossings.inputs.push_back(at);
    }
    written.push_back(op.output);
    const auto& outputs = program.outputs;
    const bool given = std::find(outputs.begin(), outputs.end(), op.output) != outputs.end();
    const bool is_logits = graph.logits >= 0 && graph.overlap(op.output, graph.logits);
    if (graph.tensor(op.output).width > 0 && given && (is_logits || !program.sole_device)) {
      crossings.outputs.push_back(&op);
    }
    if (op.kind == OpKind::kAttention) crossings.kv_reads.push_back(&op);
    if (op.kind == OpKind::kKvWrite) crossings.kv_writes.push_back(&op);
  }
  return crossings;
}

Rows TaskCopies::rows_of(size_t tensor, int64_t begin, int64_t count) const {
  const TensorView& view = bindings_.tensors[tensor];
  const graph::Tensor& facts = program_.graph->tensor(program_.tensors[tensor]);
  return {view.data + begin * view.row_stride, view.row_stride,
          facts.width * graph::dtype_bytes(facts.type), count};
}

TaskCopies::Heads TaskCopies::kv_heads(const Op& op) {
  if (op.kind == OpKind::kKvWrite) return {op.heads.first_head, op.heads.n_heads};
  const int64_t first = op.heads.first_head / op.heads.group;
  const int64_t last = (op.heads.first_head + op.heads.n_heads - 1) / op.heads.group;
  return {first, last - first + 1};
}

// Blocks that neighbour each other go together.
Status TaskCopies::upload_kv(const Op& op) {
  const KvLayout& layout = batch_.kv_layout;
  const int64_t block_bytes = layout.block_elements() * kv_type_bytes(layout.type);
  const Heads heads = kv_heads(op);
  for (const SequenceView& sequence : batch_.sequences) {
    const int64_t blocks = blocks_for(sequence.first_position + sequence.n_rows);
    for (int64_t begin = 0; begin < blocks;) {
      int64_t end = begin + 1;
      while (end < blocks && sequence.block_table[end] == sequence.block_table[end - 1] + 1) ++end;
      for (int64_t head = heads.first; head < heads.first + heads.count; ++head) {
        for (const int which : {0, 1}) {
          std::byte* data = batch_.kv + layout.head_offset(op.layer, head, which) +
                            sequence.block_table[begin] * block_bytes;
          RETURN_IF_ERROR(mirrors_.upload({data, block_bytes, block_bytes, end - begin}));
        }
      }
      begin = end;
    }
  }
  return {};
}

// Just the cells of the pass: neighbours in their blocks may be written by others meanwhile.
Status TaskCopies::download_kv(const Op& op) {
  const KvLayout& layout = batch_.kv_layout;
  const int64_t element = kv_type_bytes(layout.type);
  const int64_t block_bytes = layout.block_elements() * element;
  const Heads heads = kv_heads(op);
  for (const SequenceView& sequence : batch_.sequences) {
    const int64_t end = sequence.first_position + sequence.n_rows;
    for (int64_t position = sequence.first_position; position < end;) {
      const int64_t slot = position % kKvBlockTokens;
      const int64_t count = std::min(kKvBlockTokens - slot, end - position);
      const int64_t offset = sequence.block_table[position / kKvBlockTokens] * block_bytes;
      for (int64_t head = heads.first; head < heads.first + heads.count; ++head) {
        std::byte* keys = batch_.kv + layout.head_offset(op.layer, head, 0) + offset;
        std::byte* values = batch_.kv + layout.head_offset(op.layer, head, 1) + offset;
        RETURN_IF_ERROR(mirrors_.download(
            {keys + slot * element, kKvBlockTokens * element, count * element, layout.head_dim}));
        const int64_t row = layout.head_dim * element;
        RETURN_IF_ERROR(mirrors_.download({values + slot * row, row, row, count}));
      }
      position += count;
    }
  }
  return {};
}

// Copies of blocks that were made in the pool's memory are repeated in the device's own. Where the
// device does not have what was copied, the pool does; and it has everything if this device took no
// part in a pass that settled copies.
Status TaskCopies::repeat_copies(Mirrors::KvState& state) {
  const KvLayout& layout = batch_.kv_layout;
  const int64_t bytes = layout.block_elements() * kv_type_bytes(layout.type);
  ASSIGN_OR_RETURN(const Place place, mirrors_.find(batch_.kv));
  if (state.last_copy < batch_.kv_copies.settled) {
    std::fill(state.resident.begin(), state.resident.end(), false);
    state.last_copy = batch_.kv_copies.settled;
  }
  for (const KvBlockCopy& copy : batch_.kv_copies.list) {
    if (copy.number <= state.last_copy) continue;
    state.last_copy = copy.number;
    const bool has = state.resident[static_cast<size_t>(copy.from)];
    state.resident[static_cast<size_t>(copy.to)] = has;
    if (!has) continue;
    for (int64_t head = 0; head < 2 * layout.n_layers * layout.n_kv_heads; ++head) {
      const int64_t base = place.offset + head * layout.head_bytes();
      RETURN_IF_ERROR(
          check_call("clEnqueueCopyBuffer",
                     api().EnqueueCopyBuffer(queue_, place.buffer, place.buffer,
                                             static_cast<size_t>(base + copy.from * bytes),
                                             static_cast<size_t>(base + copy.to * bytes),
                                             static_cast<size_t>(bytes), 0, nullptr, nullptr)));
    }
  }
  return {};
}

// Of all layers and heads.
Status TaskCopies::upload_blocks(int64_t begin, int64_t end) {
  const KvLayout& layout = batch_.kv_layout;
  const int64_t bytes = layout.block_elements() * kv_type_bytes(layout.type);
  for (int64_t head = 0; head < 2 * layout.n_layers * layout.n_kv_heads; ++head) {
    std::byte* data = batch_.kv + head * layout.head_bytes() + begin * bytes;
    RETURN_IF_ERROR(mirrors_.upload({data, bytes, bytes, end - begin}));
  }
  return {};
}

// What the sequences of the pass hold from before this device was the only one. What they get in
// the pass, it writes itself.
Status TaskCopies::upload_missing(Mirrors::KvState& state) {
  for (const SequenceView& sequence : batch_.sequences) {
    const int64_t held = blocks_for(sequence.first_position);
    const int64_t blocks = blocks_for(sequence.first_position + sequence.n_rows);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t block = sequence.block_table[i];
      const auto at = static_cast<size_t>(block);
      if (i < held && !state.resident[at]) RETURN_IF_ERROR(upload_blocks(block, block + 1));
      state.resident[at] = true;
    }
  }
  return {};
}

Status TaskCopies::catch_up() {
  ASSIGN_OR_RETURN(Mirrors::KvState* const state, mirrors_.kv_state(batch_.kv));
  state->resident.resize(static_cast<size_t>(batch_.kv_layout.n_blocks), false);
  RETURN_IF_ERROR(repeat_copies(*state));
  return upload_missing(*state);
}

Status TaskCopies::before() {
  if (!mirrors_.own_memory()) return {};
  for (const size_t input : crossings_.inputs) {
    const graph::Tensor& tensor = program_.graph->tensor(program_.tensors[input]);
    RETURN_IF_ERROR(mirrors_.upload(rows_of(input, 0, batch_.row_count(tensor.rows))));
  }
  const bool uses_kv = !crossings_.kv_reads.empty() || !crossings_.kv_writes.empty();
  if (!uses_kv) return {};
  if (crossings_.sole_device) return catch_up();
  // From here on the pool has all of the cache.
  ASSIGN_OR_RETURN(Mirrors::KvState* const state, mirrors_.kv_state(batch_.kv));
  state->resident.clear();
  for (const Op* op : crossings_.kv_reads) RETURN_IF_ERROR(upload_kv(*op));
  return {};
}

Status TaskCopies::after() {
  if (!mirrors_.own_memory()) return {};
  for (const Op* op : crossings_.outputs) {
    const graph::Tensor& tensor = program_.graph->tensor(op->output);
    const RowRange rows = rows_written(*op, tensor, batch_);
    const Rows out = rows_of(program_.index_of(op->output), rows.begin, rows.end - rows.begin);
    // Alone, nobody reads them before the task is finished.
    RETURN_IF_ERROR(crossings_.sole_device ? mirrors_.download_by_landing(out)
                                           : mirrors_.download(out));
  }
  if (crossings_.sole_device) return {};
  for (const Op* op : crossings_.kv_writes) RETURN_IF_ERROR(download_kv(*op));
  return {};
}

}  // namespace troika::device::opencl
