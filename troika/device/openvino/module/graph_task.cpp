#include "troika/device/openvino/module/graph_task.h"

#include <algorithm>
#include <cstring>

namespace troika::device::openvino {
namespace {

// Sets of memory that a kernel is kept ready for: the micro-batches in flight, and some.
constexpr size_t kMaxRequests = 16;

void copy_rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride,
               int64_t rows, int64_t row_bytes) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(row_bytes));
  }
}

int64_t row_bytes(int64_t width) { return width * int64_t{sizeof(float)}; }

}  // namespace

GraphTask::GraphTask(const Program& program, const Segment& segment,
                     std::shared_ptr<CompiledStage> stage, std::shared_ptr<TaskCounters> counters)
    : stage_(std::move(stage)), counters_(std::move(counters)), max_rows_(program.max_rows) {
  const auto port_of = [&](size_t tensor) {
    return Port{tensor, program.graph->tensor(program.tensors[tensor]).width};
  };
  for (const size_t input : segment.inputs) inputs_.push_back(port_of(input));
  for (const size_t output : segment.outputs) outputs_.push_back(port_of(output));
  if (stage_->weight_inputs) weights_ = weight_inputs(program, segment);
}

GraphTask::~GraphTask() {
  for (const Request& request : requests_) forget(request);
}

bool GraphTask::is_contiguous(const TensorView& view, const Port& port) const {
  return max_rows_ == 1 || view.row_stride == row_bytes(port.width);
}

bool GraphTask::is_bound_to(const Request& request, const Bindings& bindings) const {
  for (size_t i = 0; i < port_count(); ++i) {
    const TensorView& now = view(bindings, i);
    const TensorView& then = request.views[i];
    if (now.data != then.data || now.row_stride != then.row_stride) return false;
  }
  return true;
}

// A graph has an order of its own: what it writes early must not lie where it still has to read.
bool GraphTask::overwrites_input(const Bindings& bindings, size_t index) const {
  const std::byte* const begin = view(bindings, index).data;
  const std::byte* const end = begin + max_rows_ * row_bytes(port(index).width);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::byte* const input = view(bindings, i).data;
    const int64_t bytes = max_rows_ * row_bytes(inputs_[i].width);
    if (is_contiguous(view(bindings, i), inputs_[i]) && input < end && begin < input + bytes) {
      return true;
    }
  }
  return false;
}

ov::Tensor GraphTask::own_tensor(const Port& port) {
  ov::Tensor tensor(ov::element::f32,
                    {static_cast<size_t>(max_rows_), static_cast<size_t>(port.width)});
  std::memset(tensor.data(), 0, tensor.get_byte_size());
  counters_->buffer_bytes += static_cast<int64_t>(tensor.get_byte_size());
  return tensor;
}

void GraphTask::forget(const Request& request) {
  for (const auto* copies : {&request.before, &request.after}) {
    for (const Copy& copy : *copies) {
      counters_->buffer_bytes -= static_cast<int64_t>(copy.own.get_byte_size());
    }
  }
}

GraphTask::Request GraphTask::bind(const Bindings& bindings) {
  Request bound;
  std::vector<std::byte*> memory;
  for (size_t i = 0; i < port_count(); ++i) {
    const bool is_input = i < inputs_.size();
    bound.views.push_back(view(bindings, i));
    memory.push_back(view(bindings, i).data);
    if (!is_contiguous(view(bindings, i), port(i)) ||
        (!is_input && overwrites_input(bindings, i))) {
      ov::Tensor own = own_tensor(port(i));
      memory.back() = static_cast<std::byte*>(own.data());
      (is_input ? bound.before : bound.after).push_back({i, std::move(own)});
    }
  }
  for (int64_t first = 0; first < max_rows_; first += stage_->rows) {
    bound.blocks.push_back(stage_->model.create_infer_request());
    for (size_t i = 0; i < port_count(); ++i) {
      const int64_t width = port(i).width;
      const ov::Shape shape = {static_cast<size_t>(stage_->rows), static_cast<size_t>(width)};
      const ov::Tensor rows(ov::element::f32, shape, memory[i] + first * row_bytes(width));
      if (i < inputs_.size()) {
        bound.blocks.back().set_input_tensor(i, rows);
      } else {
        bound.blocks.back().set_output_tensor(i - inputs_.size(), rows);
      }
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      bound.blocks.back().set_input_tensor(inputs_.size() + i, weights_[i].tensor);
    }
  }
  return bound;
}

GraphTask::Request& GraphTask::request_for(const Bindings& bindings) {
  const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const Request& request) {
    return is_bound_to(request, bindings);
  });
  if (found != requests_.end()) return *found;
  if (requests_.size() == kMaxRequests) {
    const auto oldest = std::min_element(
        requests_.begin(), requests_.end(),
        [](const Request& a, const Request& b) { return a.last_use < b.last_use; });
    forget(*oldest);
    requests_.erase(oldest);
  }
  requests_.push_back(bind(bindings));
  return requests_.back();
}

void GraphTask::count(const Copy& copy, int64_t n_rows) {
  ++counters_->copies;
  counters_->copy_bytes += n_rows * row_bytes(port(copy.port).width);
}

void GraphTask::run(const Bindings& bindings, int64_t n_rows) {
  Request& bound = request_for(bindings);
  bound.last_use = ++uses_;
  for (Copy& copy : bound.before) {
    const TensorView& memory = view(bindings, copy.port);
    const int64_t bytes = row_bytes(port(copy.port).width);
    copy_rows(memory.data, memory.row_stride, static_cast<std::byte*>(copy.own.data()), bytes,
              n_rows, bytes);
    count(copy, n_rows);
  }
  for (ov::InferRequest& block : bound.blocks) block.infer();
  for (const Copy& copy : bound.after) {
    const TensorView& memory = view(bindings, copy.port);
    const int64_t bytes = row_bytes(port(copy.port).width);
    copy_rows(static_cast<const std::byte*>(copy.own.data()), bytes, memory.data, memory.row_stride,
              n_rows, bytes);
    count(copy, n_rows);
  }
}

}  // namespace troika::device::openvino
