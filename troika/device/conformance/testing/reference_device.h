// For tests: a device that computes by the reference, as precisely as wanted, and wrongly where
// wanted.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "troika/device/conformance/reference.h"
#include "troika/device/work_queue.h"
#include "troika/model/quantize.h"

namespace troika::device::conformance::testing {

enum class Fault {
  kNone,
  kIgnoresOutputSlice,
  kIgnoresInputSlice,
  kIgnoresFirstHead,
  kIgnoresHeadGroups,
  kIgnoresEps,
  kIgnoresBlockTables,
  kIgnoresFirstLogitRow,
  kSwapsRopePairs,
  kAddsOnlyTwo,
  kSeesOneKeyMore,
  kWritesPadRowToCache,
  kWritesBesideWindow,
  kWritesBehindLastRow,
  kWrongAtFullLength,
  kLeavesMiddleOutputs,
  kGivesNan,
  kGivesTheSameForAnyInput,
  kEightBitActivations,
  kRefusesToCompile,
  kHasNoMemory,
  kRefusesToRun,
  kHangs,
};

enum class Precision { kDouble, kHalf, kBrain };

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(Fault fault = Fault::kNone, Precision precision = Precision::kDouble,
                           std::vector<int64_t> standard_rows = {})
      : fault_(fault),
        precision_(precision),
        queue_("reference", {}, system_clock(), [this](const Kernel& kernel, const Bindings& b) {
          return run(static_cast<const ReferenceKernel&>(kernel).program, b);
        }) {
    info_.name = std::string("reference");
    info_.kind = DeviceKind::kNpu;
    info_.version = std::string("1");
    info_.standard_rows = std::move(standard_rows);
    info_.exact = precision == Precision::kDouble;
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceInfo& facts() { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return graph.op(op).kind != left_out_;
  }
  // This operator cannot be computed.
  void leave_out(std::optional<graph::OpKind> kind) { left_out_ = kind; }
  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    if (fault_ == Fault::kRefusesToCompile) {
      return make_error(ErrorCode::kDeviceFailed, "no room for a graph");
    }
    if (fault_ == Fault::kHasNoMemory) {
      return make_error(ErrorCode::kOutOfMemory, "no memory for a graph");
    }
    auto kernel = std::make_unique<ReferenceKernel>();
    kernel->program = program;
    return kernel;
  }
  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    return queue_.submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const override { return queue_.times(fence); }
  DeviceStats stats() const override { return queue_.stats(); }
  void abandon(Error reason) override {
    let_go_ = true;
    queue_.abandon(std::move(reason));
  }
  bool lost() const override { return queue_.lost(); }
  bool stuck() const override { return queue_.stuck(); }

 private:
  struct ReferenceKernel final : Kernel {
    Program program;
  };

  Status run(const Program& program, const Bindings& bindings) {
    if (fault_ == Fault::kRefusesToRun) {
      return make_error(ErrorCode::kDeviceFailed, "the device was lost");
    }
    while (fault_ == Fault::kHangs && !let_go_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (fault_ == Fault::kHangs) return {};
    graph::Graph graph = *program.graph;
    for (graph::Op& op : graph.ops) spoil(op);
    BatchView batch = *bindings.batch;
    std::vector<SequenceView> sequences(batch.sequences.begin(), batch.sequences.end());
    std::vector<int32_t> identity;
    spoil(batch, sequences, identity);
    batch.sequences = sequences;

    Values values(graph, program.max_rows);
    const std::vector<graph::TensorId>& tensors = program.tensors;
    for (size_t i = 0; i < tensors.size(); ++i) {
      for (int64_t r = 0; r < batch.n_rows; ++r) {
        const float* from = row(bindings.tensors[i], r);
        std::copy_n(from, graph.tensor(tensors[i]).width, values.row(tensors[i], r));
      }
    }
    KvCells kv{batch.kv_layout, load_cells(batch.kv_layout, batch.kv)};
    for (const graph::OpId id : program.ops) {
      const graph::Op& op = graph.op(id);
      for (const graph::TensorId input : op.inputs) {
        if (op.kind == graph::OpKind::kMatMul) quantize(values, graph, input, batch.n_rows);
        round(values, graph, input, batch.n_rows);
      }
      compute(graph, id, batch, values, kv);
      round(values, graph, op.output, batch.n_rows);
      if (op.kind == graph::OpKind::kKvWrite) write_pad_row(op, batch, kv);
    }
    store_cells(kv, batch.kv);
    for (size_t i = 0; i < tensors.size(); ++i) {
      write_back(program, graph, bindings, batch, i, values);
    }
    return {};
  }

  static float* row(const TensorView& view, int64_t index) {
    return reinterpret_cast<float*>(view.data + index * view.row_stride);
  }

  void spoil(graph::Op& op) const {
    if (fault_ == Fault::kIgnoresOutputSlice) op.n_begin = 0;
    if (fault_ == Fault::kIgnoresInputSlice) op.k_begin = 0;
    if (fault_ == Fault::kIgnoresFirstHead) op.heads.first_head = 0;
    if (fault_ == Fault::kIgnoresHeadGroups && op.kind == graph::OpKind::kAttention) {
      op.heads.first_head -= op.heads.first_head % op.heads.group;
    }
    if (fault_ == Fault::kIgnoresEps) op.eps = 0;
    if (fault_ == Fault::kSwapsRopePairs) {
      op.heads.rope_pairs = op.heads.rope_pairs == model::RopePairs::kHalves
                                ? model::RopePairs::kAdjacent
                                : model::RopePairs::kHalves;
    }
    if (fault_ == Fault::kAddsOnlyTwo && op.kind == graph::OpKind::kAdd) op.inputs.resize(2);
  }

  void spoil(BatchView& batch, std::vector<SequenceView>& sequences,
             std::vector<int32_t>& identity) const {
    if (fault_ == Fault::kIgnoresFirstLogitRow) batch.first_logit_row = 0;
    for (int32_t i = 0; i < 100; ++i) identity.push_back(i);
    for (SequenceView& sequence : sequences) {
      if (fault_ == Fault::kIgnoresBlockTables) sequence.block_table = identity.data();
      // Stays within the last block that the sequence has.
      const int64_t end = sequence.first_position + sequence.n_rows;
      if (fault_ == Fault::kSeesOneKeyMore && end % kKvBlockTokens != 0) ++sequence.first_position;
    }
  }

  void round(Values& values, const graph::Graph& graph, graph::TensorId tensor,
             int64_t rows) const {
    if (precision_ == Precision::kDouble) return;
    for (int64_t r = 0; r < rows; ++r) {
      double* value = values.row(tensor, r);
      for (int64_t i = 0; i < graph.tensor(tensor).width; ++i) {
        const auto single = static_cast<float>(value[i]);
        value[i] = precision_ == Precision::kHalf ? model::f16_to_f32(model::f32_to_f16(single))
                                                  : model::bf16_to_f32(model::f32_to_bf16(single));
      }
    }
  }

  // To 8 bits for each 32 values, as fast integer products take them.
  void quantize(Values& values, const graph::Graph& graph, graph::TensorId tensor,
                int64_t rows) const {
    if (fault_ != Fault::kEightBitActivations) return;
    const int64_t width = graph.tensor(tensor).width;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t begin = 0; begin < width; begin += 32) {
        double* block = values.row(tensor, r) + begin;
        const int64_t n = std::min<int64_t>(32, width - begin);
        double most = 1e-30;
        for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(block[i]));
        for (int64_t i = 0; i < n; ++i) block[i] = std::round(block[i] / most * 127) * most / 127;
      }
    }
  }

  void write_pad_row(const graph::Op& op, const BatchView& batch, KvCells& kv) const {
    if (fault_ != Fault::kWritesPadRowToCache) return;
    const SequenceView& last = batch.sequences.back();
    const int64_t position = last.first_position + last.n_rows;
    if (position % kKvBlockTokens == 0) return;
    kv.values[kv.index(op.layer, op.heads.first_head, 0,
                       last.block_table[position / kKvBlockTokens], position % kKvBlockTokens)] = 0;
  }

  void write_back(const Program& program, const graph::Graph& graph, const Bindings& bindings,
                  const BatchView& batch, size_t index, Values& values) const {
    const graph::TensorId id = program.tensors[index];
    const graph::Tensor& tensor = graph.tensor(id);
    const TensorView& view = bindings.tensors[index];
    const auto op = std::find_if(program.ops.begin(), program.ops.end(),
                                 [&](graph::OpId o) { return graph.op(o).output == id; });
    if (op == program.ops.end() || tensor.width == 0) return;
    if (fault_ == Fault::kLeavesMiddleOutputs && id != program.outputs.back()) return;
    const RowRange rows = rows_written(graph, *op, batch);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const double* from = values.row(id, r);
      for (int64_t i = 0; i < tensor.width; ++i) row(view, r)[i] = static_cast<float>(from[i]);
      if (fault_ == Fault::kGivesTheSameForAnyInput) std::fill_n(row(view, r), tensor.width, 1.0f);
      if (fault_ == Fault::kWritesBesideWindow && tensor.window_of >= 0) {
        row(view, r)[tensor.width] = 0;
      }
    }
    if (fault_ == Fault::kGivesNan) row(view, rows.begin)[0] = std::nanf("");
    if (fault_ == Fault::kWritesBehindLastRow) row(view, program.max_rows)[0] = 0;
    if (fault_ == Fault::kWrongAtFullLength && rows.end == program.max_rows) {
      row(view, rows.end - 1)[0] += 1;
    }
  }

  const Fault fault_;
  const Precision precision_;
  DeviceInfo info_;
  std::optional<graph::OpKind> left_out_;
  std::atomic<bool> let_go_{false};
  WorkQueue queue_;  // last: its worker uses all of the above
};

}  // namespace troika::device::conformance::testing
