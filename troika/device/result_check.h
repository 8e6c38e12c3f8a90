// What a task wrote, row by row; and a look through it for NaN and Inf.
#pragma once

#include <algorithm>

#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device {

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Rows of an operator's output that a task writes for a batch; padding comes after them.
RowRange rows_written(const graph::Op& op, const graph::Tensor& output, const BatchView& batch);

// Calls body(op, output, row, values) for every row of floats that a finished task gave to others.
template <class Body>
void for_each_output_row(const Program& program, const Bindings& bindings, const Body& body) {
  for (const graph::OpId id : program.ops) {
    const graph::Op& op = program.graph->op(id);
    const graph::Tensor& output = program.graph->tensor(op.output);
    const auto& outputs = program.outputs;
    if (output.width == 0 || output.type != graph::DType::kF32) continue;
    if (std::find(outputs.begin(), outputs.end(), op.output) == outputs.end()) continue;
    const TensorView& view = bindings.tensors[program.index_of(op.output)];
    const RowRange rows = rows_written(op, output, *bindings.batch);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      body(op, output, row, reinterpret_cast<float*>(view.data + row * view.row_stride));
    }
  }
}

// Looks through `outputs` of a finished task, rows of the batch only (padding may hold anything).
// kDeviceFailed naming device, operator, layer and row. Reads each output once, which costs little
// while it is in a cache; `cpu` is the reference and is not checked.
Status check_finite(const std::string& device, const Program& program, const Bindings& bindings);

}  // namespace troika::device
