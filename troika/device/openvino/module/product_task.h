// Runs the products of one row that read the same input: one graph multiplies, the host puts the
// results where they belong and adds what blocks of weights are offset by.
#pragma once

#include <memory>
#include <openvino/runtime/infer_request.hpp>
#include <vector>

#include "troika/device/openvino/module/graph_task.h"
#include "troika/device/openvino/module/segments.h"
#include "troika/device/openvino/module/stage_compiler.h"

namespace troika::device::openvino {

// Threads: one at a time.
class ProductTask {
 public:
  // `program` and `segment` are read during construction only.
  ProductTask(const Program& program, const Segment& segment, std::shared_ptr<CompiledStage> stage,
              std::shared_ptr<TaskCounters> counters);
  ~ProductTask();
  ProductTask(const ProductTask&) = delete;
  ProductTask& operator=(const ProductTask&) = delete;

  // Throws what OpenVINO throws.
  void run(const Bindings& bindings);

 private:
  struct Output {
    size_t tensor = 0;  // index into Bindings::tensors
    int64_t width = 0;  // floats
  };

  int64_t own_bytes() const;
  void add_offsets(const float* x);

  const std::shared_ptr<CompiledStage> stage_;
  const std::shared_ptr<TaskCounters> counters_;
  ov::InferRequest request_;
  size_t input_ = 0;  // index into Bindings::tensors
  int64_t input_width_ = 0;
  const std::byte* bound_ = nullptr;  // the input that the request reads
  std::vector<Output> outputs_;
  ov::Tensor products_;         // the graph's output: all of theirs, side by side
  std::vector<float> offsets_;  // [blocks of inputs, outputs]; empty: none
  std::vector<float> sums_;     // of each block of inputs
};

}  // namespace troika::device::openvino
