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
  const int64_t count = batch.row_count(output.rows);
  if (op.kind != graph::OpKind::kGatherRows) return {0, count};
  return {batch.first_logit_row, batch.first_logit_row + count};
}

Status check_finite(const std::string& device, const Program& program, const Bindings& bindings) {
  Status status;
  for_each_output_row(
      program, bindings,
      [&](const graph::Op& op, const graph::Tensor& output, int64_t row, const float* values) {
        if (!status || all_finite(values, output.width)) return;
        const std::string layer = op.layer < 0 ? "" : fmt::format(" of layer {}", op.layer);
        status = make_error(ErrorCode::kDeviceFailed,
                            "device {} gave NaN or infinite values: {} ({}){}, row {}", device,
                            to_string(op.kind), output.name, layer, row);
      });
  return status;
}

}  // namespace troika::device
