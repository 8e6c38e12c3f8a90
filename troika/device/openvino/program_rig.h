// For tests: runs a program on a device over memory of its own, so that devices can be compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "troika/device/device.h"
#include "troika/device/memory.h"
#include "troika/graph/graph.h"

namespace troika::device::openvino::testing {

// How far apart rows lie: as planned memory has them, or with a gap.
enum class RowGap { kToCacheLine, kMore };

// Operators [first, last) as one program; its outputs are what operators outside read, and what
// nobody reads.
inline Program program_of(const graph::Graph& graph, size_t first, size_t last, int64_t max_rows) {
  Program program;
  program.graph = &graph;
  program.max_rows = max_rows;
  const auto note = [&](graph::TensorId id) {
    auto& tensors = program.tensors;
    if (std::find(tensors.begin(), tensors.end(), id) == tensors.end()) tensors.push_back(id);
  };
  const auto readers = [&](graph::TensorId id, size_t from, size_t to) {
    return std::any_of(
        graph.ops.begin() + static_cast<std::ptrdiff_t>(from),
        graph.ops.begin() + static_cast<std::ptrdiff_t>(to), [&](const graph::Op& op) {
          return std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end();
        });
  };
  for (size_t i = first; i < last; ++i) {
    const graph::Op& op = graph.ops[i];
    program.ops.push_back(static_cast<graph::OpId>(i));
    for (const graph::TensorId input : op.inputs) note(input);
    note(op.output);
    if (readers(op.output, last, graph.ops.size()) || !readers(op.output, first, last)) {
      program.outputs.push_back(op.output);
    }
  }
  return program;
}

// Memory for all tensors of a graph, filled with the same random numbers for the same seed, and a
// batch of one sequence.
class Rig {
 public:
  Rig(const graph::Graph& graph, int64_t max_rows, int64_t n_rows, int64_t first_position = 0,
      RowGap gap = RowGap::kToCacheLine, uint32_t seed = 1)
      : graph_(graph) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    int64_t bytes = 0;
    for (const graph::Tensor& tensor : graph.tensors) {
      const int64_t lines = (tensor.width * 4 + 63) / 64 + (gap == RowGap::kMore ? 1 : 0);
      offsets_.push_back(bytes);
      strides_.push_back(lines * 64);
      bytes += lines * 64 * max_rows;
    }
    memory_ = *pool_.allocate("test", std::max<int64_t>(bytes, 64));
    auto* const floats = reinterpret_cast<float*>(memory_.data());
    for (int64_t i = 0; i < bytes / 4; ++i) floats[i] = normal(random);
    for (size_t i = 0; i < graph.tensors.size(); ++i) place_window(static_cast<graph::TensorId>(i));
    make_batch(n_rows, first_position, random);
  }

  TensorView view(graph::TensorId id) const {
    const auto i = static_cast<size_t>(id);
    return {memory_.data() + offsets_[i], strides_[i]};
  }
  std::span<float> row(graph::TensorId id, int64_t r) const {
    const TensorView where = view(id);
    return {reinterpret_cast<float*>(where.data + r * where.row_stride),
            static_cast<size_t>(graph_.tensor(id).width)};
  }
  BatchView& batch() { return batch_; }
  std::vector<float>& kv() { return kv_; }

  // Compiles, runs and waits.
  Status run(Device& device, const Program& program) {
    ASSIGN_OR_RETURN(const auto kernel, device.compile(program));
    return run(device, *kernel, program);
  }
  Status run(Device& device, const Kernel& kernel, const Program& program) {
    std::vector<TensorView> views;
    for (const graph::TensorId id : program.tensors) views.push_back(view(id));
    const Bindings bindings{views, &batch_};
    ASSIGN_OR_RETURN(const Fence fence, device.submit(kernel, bindings, {}));
    return fence.wait();
  }

  int64_t rows_of(graph::TensorId id) const {
    return graph_.tensor(id).rows == graph::RowCount::kTokens
               ? batch_.n_rows
               : static_cast<int64_t>(batch_.logit_rows.size());
  }

 private:
  void place_window(graph::TensorId id) {
    const graph::Tensor& tensor = graph_.tensor(id);
    if (tensor.window_of < 0) return;
    const auto owner = static_cast<size_t>(tensor.window_of);
    offsets_[static_cast<size_t>(id)] = offsets_[owner] + tensor.window_begin * 4;
    strides_[static_cast<size_t>(id)] = strides_[owner];
  }

  void make_batch(int64_t n_rows, int64_t first_position, std::mt19937& random) {
    for (int64_t i = 0; i < n_rows; ++i) {
      tokens_.push_back(static_cast<int32_t>(random() % std::max<int64_t>(1, graph_.n_vocab)));
      positions_.push_back(static_cast<int32_t>(first_position + i));
      logit_rows_.push_back(static_cast<int32_t>(i));
    }
    const int64_t blocks = (first_position + n_rows) / kKvBlockTokens + 1;
    for (int64_t i = 0; i < blocks; ++i) blocks_.push_back(static_cast<int32_t>(i));
    sequence_.n_rows = n_rows;
    sequence_.first_position = first_position;
    sequence_.block_table = blocks_.data();
    batch_.kv_layout = {KvType::kF32, graph_.n_layers, graph_.n_kv_heads, graph_.head_dim, blocks};
    kv_.resize(static_cast<size_t>(batch_.kv_layout.total_bytes() / 4));
    std::normal_distribution<float> normal;
    for (float& value : kv_) value = normal(random);
    batch_.n_rows = n_rows;
    batch_.tokens = tokens_;
    batch_.positions = positions_;
    batch_.sequences = {&sequence_, 1};
    batch_.logit_rows = logit_rows_;
    batch_.kv = reinterpret_cast<std::byte*>(kv_.data());
  }

  const graph::Graph& graph_;
  SharedPool pool_;
  SharedBlock memory_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> strides_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  std::vector<int32_t> blocks_;
  std::vector<float> kv_;
  SequenceView sequence_;
  BatchView batch_;
};

// Sum of squared differences over the sum of squares, of the rows of a batch.
inline double nmse(const Rig& got, const Rig& expected, graph::TensorId id) {
  double error = 0;
  double power = 0;
  for (int64_t r = 0; r < expected.rows_of(id); ++r) {
    const std::span<float> a = got.row(id, r);
    const std::span<float> b = expected.row(id, r);
    for (size_t i = 0; i < a.size(); ++i) {
      const double difference = double{a[i]} - double{b[i]};
      error += difference * difference;
      power += double{b[i]} * double{b[i]};
    }
  }
  return power > 0 ? error / power : error;
}

}  // namespace troika::device::openvino::testing
