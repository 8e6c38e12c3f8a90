// Runs one compiled graph over the memory that a task's bindings name.
#pragma once

#include <atomic>
#include <memory>
#include <openvino/runtime/infer_request.hpp>
#include <vector>

#include "troika/device/openvino/module/segments.h"
#include "troika/device/openvino/module/stage_compiler.h"
#include "troika/device/openvino/module/weight_inputs.h"

namespace troika::device::openvino {

// Of all tasks of a device; kernels may be destroyed after it.
struct TaskCounters {
  std::atomic<int64_t> copies{0};
  std::atomic<int64_t> copy_bytes{0};
  std::atomic<int64_t> buffer_bytes{0};  // of tasks' own tensors
};

// Threads: one at a time.
class GraphTask {
 public:
  // `program` and `segment` are read during construction only.
  GraphTask(const Program& program, const Segment& segment, std::shared_ptr<CompiledStage> stage,
            std::shared_ptr<TaskCounters> counters);
  ~GraphTask();
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // Computes all rows; what lies beyond `n_rows` is padding. Throws what OpenVINO throws.
  void run(const Bindings& bindings, int64_t n_rows);

 private:
  // A tensor that the graph reads or writes.
  struct Port {
    size_t tensor = 0;  // index into Bindings::tensors
    int64_t width = 0;  // floats
  };
  struct Copy {
    size_t port = 0;
    ov::Tensor own;  // [max_rows, width]
  };
  // Requests with their tensors set: kept, since the memory of a task is mostly the same each time.
  struct Request {
    std::vector<TensorView> views;         // of inputs, then of outputs
    std::vector<ov::InferRequest> blocks;  // of as many rows as the graph has, one after another
    std::vector<Copy> before;
    std::vector<Copy> after;
    uint64_t last_use = 0;
  };

  const Port& port(size_t index) const {
    return index < inputs_.size() ? inputs_[index] : outputs_[index - inputs_.size()];
  }
  size_t port_count() const { return inputs_.size() + outputs_.size(); }
  const TensorView& view(const Bindings& bindings, size_t index) const {
    return bindings.tensors[port(index).tensor];
  }
  bool is_bound_to(const Request& request, const Bindings& bindings) const;
  bool is_contiguous(const TensorView& view, const Port& port) const;
  bool overwrites_input(const Bindings& bindings, size_t index) const;
  ov::Tensor own_tensor(const Port& port);
  Request bind(const Bindings& bindings);
  void forget(const Request& request);
  Request& request_for(const Bindings& bindings);
  void count(const Copy& copy, int64_t n_rows);

  const std::shared_ptr<CompiledStage> stage_;
  const std::shared_ptr<TaskCounters> counters_;
  const int64_t max_rows_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<WeightInput> weights_;
  std::vector<Request> requests_;
  uint64_t uses_ = 0;
};

}  // namespace troika::device::openvino
