#include "troika/device/openvino/module/product_task.h"

#include <algorithm>
#include <cstring>

#include "troika/device/openvino/module/weight_inputs.h"

namespace troika::device::openvino {
namespace {

// Few enough to stay in the first-level cache while all blocks' offsets are added.
constexpr size_t kOutputsAtOnce = 1024;

float sum_of_block(const float* x) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < kWeightBlock; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

ProductTask::ProductTask(const Program& program, const Segment& segment,
                         std::shared_ptr<CompiledStage> stage,
                         std::shared_ptr<TaskCounters> counters)
    : stage_(std::move(stage)),
      counters_(std::move(counters)),
      request_(stage_->model.create_infer_request()),
      input_(segment.inputs.front()),
      input_width_(program.graph->tensor(program.tensors[input_]).width) {
  int64_t width = 0;
  for (const size_t output : segment.outputs) {
    outputs_.push_back({output, program.graph->tensor(program.tensors[output]).width});
    width += outputs_.back().width;
  }
  if (stage_->weights == WeightForm::kLevels) {
    offsets_ = block_offsets(slices_of(*program.graph, segment));
  }
  products_ = ov::Tensor(ov::element::f32, {1, static_cast<size_t>(width)});
  request_.set_output_tensor(products_);
  if (stage_->weight_inputs) {
    size_t next = 1;  // behind x
    for (const WeightInput& weight : weight_inputs(program, segment)) {
      request_.set_input_tensor(next++, weight.tensor);
    }
  }
  sums_.resize(offsets_.size() / products_.get_size());
  counters_->buffer_bytes += own_bytes();
}

ProductTask::~ProductTask() { counters_->buffer_bytes -= own_bytes(); }

int64_t ProductTask::own_bytes() const {
  return static_cast<int64_t>((products_.get_size() + offsets_.size()) * sizeof(float));
}

void ProductTask::add_offsets(const float* x) {
  if (offsets_.empty()) return;
  const size_t width = products_.get_size();
  const size_t blocks = offsets_.size() / width;
  for (size_t block = 0; block < blocks; ++block) {
    sums_[block] = sum_of_block(x + static_cast<int64_t>(block) * kWeightBlock);
  }
  for (size_t first = 0; first < width; first += kOutputsAtOnce) {
    const size_t count = std::min(kOutputsAtOnce, width - first);
    float* const products = products_.data<float>() + first;
    for (size_t block = 0; block < blocks; ++block) {
      const float* const offsets = offsets_.data() + block * width + first;
      for (size_t i = 0; i < count; ++i) products[i] += sums_[block] * offsets[i];
    }
  }
}

void ProductTask::run(const Bindings& bindings) {
  std::byte* const input = bindings.tensors[input_].data;
  if (input != bound_) {
    request_.set_input_tensor(
        0, ov::Tensor(ov::element::f32, {1, static_cast<size_t>(input_width_)}, input));
    bound_ = input;
  }
  request_.infer();
  add_offsets(reinterpret_cast<const float*>(input));
  const float* from = products_.data<const float>();
  for (const Output& output : outputs_) {
    std::memcpy(bindings.tensors[output.tensor].data, from,
                static_cast<size_t>(output.width) * sizeof(float));
    from += output.width;
  }
}

}  // namespace troika::device::openvino
