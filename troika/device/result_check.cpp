#include "troika/device/result_check.h"

#include <algorithm>
#include <cmath>

namespace troika::device {
namespace {

// A sum of x * 0 is 0 unless some x is NaN or infinite; unlike a test of each it takes the speed of
// memory.
bool all_finite(const float* values, int64_t n) {
  constexpr int64_t kLanes = 16;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane] * 0.0f;
  }
  for (; i < n; ++i) sums[0] += values[i] * 0.0f;
  return std::all_of(sums, sums + kLanes, [](float sum) { return sum == 0.0f; });
}

}  // namespace

RowRange rows_written(const graph::Op& op, const graph::Tensor& output, const BatchView& batch) {
  const auto wanted = static_cast<int64_t>(batch.logit_rows.size());
  if (op.kind == graph::OpKind::kGatherRows) {
    return {batch.first_logit_row, batch.first_logit_row + wanted};
  }
  return {0, output.rows == graph::RowCount::kTokens ? batch.n_rows : wanted};
}

Status check_finite(const std::string& device, const Program& program, const Bindings& bindings) {
  for (const graph::OpId id : program.ops) {
    const graph::Op& op = program.graph->op(id);
    const graph::Tensor& output = program.graph->tensor(op.output);
    if (output.width == 0 || output.type != graph::DType::kF32) continue;
    const auto& outputs = program.outputs;
    if (std::find(outputs.begin(), outputs.end(), op.output) == outputs.end()) continue;
    const auto& tensors = program.tensors;
    const auto found = std::find(tensors.begin(), tensors.end(), op.output);
    const TensorView& view = bindings.tensors[static_cast<size_t>(found - tensors.begin())];
    const RowRange rows = rows_written(op, output, *bindings.batch);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const auto* values = reinterpret_cast<const float*>(view.data + row * view.row_stride);
      if (all_finite(values, output.width)) continue;
      return make_error(ErrorCode::kDeviceFailed,
                        "device {} gave NaN or infinite values: {} ({}) of layer {}, row {}",
                        device, to_string(op.kind), output.name, op.layer, row);
    }
  }
  return {};
}

}  // namespace troika::device
