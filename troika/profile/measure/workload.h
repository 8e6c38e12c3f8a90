// Workload: a small program with all the memory that it needs, to be timed on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/memory.h"
#include "troika/graph/graph.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {

// Rows of one sequence.
struct WorkloadRows {
  int64_t rows = 1;
  int64_t depth = 0;     // tokens before them
  int64_t max_rows = 1;  // that the program is compiled for, at least `rows`
};

// Not movable: its program and batch point into it. Weights are borrowed.
class Workload {
 public:
  // Products of these slices, each with an input of its own.
  static Result<std::shared_ptr<Workload>> products(std::span<const graph::WeightSlice> slices,
                                                    const WorkloadRows& rows, Order order);
  // Attention of so many heads in each of `copies` layers.
  static Result<std::shared_ptr<Workload>> attention(const AttentionPoint& point, int64_t copies,
                                                     const WorkloadRows& rows);
  // rms_norm, add, silu_mul or concat (of one input: a copy).
  static Result<std::shared_ptr<Workload>> elementwise(graph::OpKind kind, int64_t width,
                                                       const WorkloadRows& rows);
  // A whole layer of a graph, which is borrowed.
  static Result<std::shared_ptr<Workload>> layer(const graph::Graph& graph, int32_t layer,
                                                 device::KvType kv_type, const WorkloadRows& rows);
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const device::Program& program() const { return program_; }
  device::Bindings bindings() const { return {views_, &batch_}; }
  // Whether the device computes all of its operators.
  bool fits(const device::Device& device) const;
  // Of activations that the operators read and write.
  double activation_bytes() const;

 private:
  Workload() = default;
  graph::TensorId add_tensor(int64_t width);
  graph::TensorId add_op(graph::Op op, int64_t width);
  Status finish(const WorkloadRows& rows, device::KvType kv_type);
  void list_tensors();
  Status allocate(int64_t rows);
  void make_batch(const WorkloadRows& rows, device::KvType kv_type);

  graph::Graph own_;
  std::vector<float> ones_;  // the weights of norms
  model::Weight norm_weight_;
  device::Program program_;
  device::SharedPool pool_;
  device::SharedBlock memory_;
  device::SharedBlock kv_;
  std::vector<device::TensorView> views_;
  std::vector<int32_t> tokens_, positions_, block_table_;
  std::vector<device::SequenceView> sequences_;
  device::BatchView batch_;
};

}  // namespace troika::profile
