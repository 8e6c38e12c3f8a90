#include "troika/device/conformance/case_memory.h"

#include <algorithm>

namespace troika::device::conformance {
namespace {

using graph::TensorId;

constexpr int64_t kAlignment = 64;
// What memory holds before a pass: finite, as what an earlier task left there.
constexpr float kMark = 12345;

int64_t round_up(int64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace

Result<std::shared_ptr<CaseMemory>> CaseMemory::allocate(std::shared_ptr<Problem> problem,
                                                         int64_t max_rows) {
  std::shared_ptr<CaseMemory> memory(new CaseMemory(std::move(problem), max_rows));
  memory->lay_out();
  int64_t bytes = kAlignment;
  const auto& tensors = memory->problem_->graph.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // One row more than tasks may use, which must keep its marks.
    const int64_t end = memory->offsets_[i] + (max_rows + 1) * memory->strides_[i];
    if (tensors[i].window_of < 0) bytes = std::max(bytes, end);
  }
  ASSIGN_OR_RETURN(memory->block_, memory->pool_.allocate("case", bytes, Pages::kSmall));
  const int64_t kv_bytes = memory->problem_->kv.layout.total_bytes();
  ASSIGN_OR_RETURN(memory->kv_, memory->pool_.allocate("kv cache", std::max(kv_bytes, kAlignment),
                                                       Pages::kSmall));
  for (const TensorId tensor : memory->problem_->program.tensors) {
    memory->views_.push_back(memory->view(tensor));
  }
  store_cells(memory->problem_->kv, memory->kv_.data());
  return memory;
}

void CaseMemory::lay_out() {
  const graph::Graph& graph = problem_->graph;
  int64_t offset = 0;
  for (const graph::Tensor& tensor : graph.tensors) {
    if (tensor.window_of >= 0) {
      const auto root = static_cast<size_t>(tensor.window_of);
      offsets_.push_back(offsets_[root] + tensor.window_begin * graph::dtype_bytes(tensor.type));
      strides_.push_back(strides_[root]);
      continue;
    }
    offsets_.push_back(offset);
    strides_.push_back(round_up(tensor.width * graph::dtype_bytes(tensor.type)));
    offset += (max_rows_ + 1) * strides_.back();
  }
}

TensorView CaseMemory::view(TensorId tensor) const {
  const auto i = static_cast<size_t>(tensor);
  return {block_.data() + offsets_[i], strides_[i]};
}

void CaseMemory::fill(const Pass& pass) {
  std::fill_n(floats(block_.data()), block_.bytes() / static_cast<int64_t>(sizeof(float)), kMark);
  for (size_t i = 0; i < problem_->inputs.size(); ++i) {
    const TensorView to = view(problem_->inputs[i]);
    const int64_t width = problem_->graph.tensor(problem_->inputs[i]).width;
    const int64_t rows = static_cast<int64_t>(pass.inputs[i].size()) / width;
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(pass.inputs[i].begin() + r * width, width, floats(to.data + r * to.row_stride));
    }
  }
}

std::vector<float> CaseMemory::read(TensorId tensor, RowRange rows) const {
  const TensorView from = view(tensor);
  std::vector<float> values;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* row = floats(from.data + r * from.row_stride);
    values.insert(values.end(), row, row + problem_->graph.tensor(tensor).width);
  }
  return values;
}

bool CaseMemory::is_written(TensorId root, int64_t column) const {
  const graph::Graph& graph = problem_->graph;
  return std::any_of(problem_->program.ops.begin(), problem_->program.ops.end(), [&](auto op) {
    const TensorId output = graph.op(op).output;
    const graph::Tensor& tensor = graph.tensor(output);
    if (tensor.window_of < 0) return output == root;
    return tensor.window_of == root && tensor.window_begin <= column &&
           column < tensor.window_begin + tensor.width;
  });
}

Status CaseMemory::check_root(TensorId root, const std::vector<float>* input) const {
  const graph::Tensor& tensor = problem_->graph.tensor(root);
  const TensorView memory = view(root);
  const int64_t rows = input == nullptr ? 0 : static_cast<int64_t>(input->size()) / tensor.width;
  for (int64_t column = 0; column < tensor.width; ++column) {
    const int64_t first = is_written(root, column) ? max_rows_ : 0;
    for (int64_t r = first; r <= max_rows_; ++r) {
      const float got = floats(memory.data + r * memory.row_stride)[column];
      const float put = r < rows ? (*input)[static_cast<size_t>(r * tensor.width + column)] : kMark;
      if (got == put) continue;
      return make_error(ErrorCode::kDeviceFailed,
                        "wrote {} to row {}, column {} of {}, which is not for it to write", got, r,
                        column, tensor.name);
    }
  }
  return {};
}

Status CaseMemory::check_marks(const Pass& pass) const {
  const auto& tensors = problem_->graph.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].window_of >= 0 || tensors[i].width == 0) continue;
    const auto id = static_cast<TensorId>(i);
    const auto input = std::find(problem_->inputs.begin(), problem_->inputs.end(), id);
    const bool is_input = input != problem_->inputs.end();
    const auto index = static_cast<size_t>(input - problem_->inputs.begin());
    RETURN_IF_ERROR(check_root(id, is_input ? &pass.inputs[index] : nullptr));
  }
  return {};
}

}  // namespace troika::device::conformance
