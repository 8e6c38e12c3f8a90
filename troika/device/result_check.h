// Catches NaN and Inf in what a task wrote, and says which operator wrote them.
#pragma once

#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device {

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Rows of an operator's output that a task writes for a batch; padding comes after them.
RowRange rows_written(const graph::Op& op, const graph::Tensor& output, const BatchView& batch);

// Looks through `outputs` of a finished task, rows of the batch only (padding may hold anything).
// kDeviceFailed naming device, operator, layer and row. Reads each output once, which costs little
// while it is in a cache; `cpu` is the reference and is not checked.
Status check_finite(const std::string& device, const Program& program, const Bindings& bindings);

}  // namespace troika::device
