// The memory of a running case, as an executor would lay it out, with marks around everything that
// a device must leave alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/device/conformance/reference.h"
#include "troika/device/memory.h"

namespace troika::device::conformance {

class CaseMemory {
 public:
  // Room for `max_rows` rows of every tensor, and the KV cache as the problem has it.
  static Result<std::shared_ptr<CaseMemory>> allocate(std::shared_ptr<Problem> problem,
                                                      int64_t max_rows);

  const Problem& problem() const { return *problem_; }
  // In the order of Program::tensors.
  std::span<const TensorView> views() const { return views_; }
  TensorView view(graph::TensorId tensor) const;
  std::byte* kv() const { return kv_.data(); }

  // Writes a pass's inputs, and marks all other memory.
  void fill(const Pass& pass);
  // Rows of a tensor, without gaps.
  std::vector<float> read(graph::TensorId tensor, RowRange rows) const;
  // Whether anything changed that no operator of the program may write: inputs, columns beside a
  // window, memory behind the last row. kDeviceFailed naming the tensor.
  Status check_marks(const Pass& pass) const;

 private:
  CaseMemory(std::shared_ptr<Problem> problem, int64_t max_rows)
      : problem_(std::move(problem)), max_rows_(max_rows) {}
  void lay_out();
  bool is_written(graph::TensorId root, int64_t column) const;
  Status check_root(graph::TensorId root, const std::vector<float>* input) const;

  std::shared_ptr<Problem> problem_;
  int64_t max_rows_ = 0;
  SharedPool pool_;
  SharedBlock block_;
  SharedBlock kv_;
  std::vector<int64_t> offsets_;  // by tensor; of windows, those of their columns
  std::vector<int64_t> strides_;
  std::vector<TensorView> views_;
};

}  // namespace troika::device::conformance
