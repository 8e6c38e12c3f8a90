#include "troika/device/faulty/spoil.h"

#include <algorithm>

#include "troika/device/result_check.h"

namespace troika::device::faulty {
namespace {

// Calls body(row, width) for every row that the task gave to others.
template <class Body>
void for_each_row(const Program& program, const Bindings& bindings, const Body& body) {
  for (const graph::OpId id : program.ops) {
    const graph::Op& op = program.graph->op(id);
    const graph::Tensor& output = program.graph->tensor(op.output);
    const auto& outputs = program.outputs;
    if (output.width == 0 || output.type != graph::DType::kF32) continue;
    if (std::find(outputs.begin(), outputs.end(), op.output) == outputs.end()) continue;
    const auto& tensors = program.tensors;
    const auto found = std::find(tensors.begin(), tensors.end(), op.output);
    const TensorView& view = bindings.tensors[static_cast<size_t>(found - tensors.begin())];
    const RowRange rows = rows_written(op, output, *bindings.batch);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      body(reinterpret_cast<float*>(view.data + row * view.row_stride), output.width);
    }
  }
}

}  // namespace

void distort(const Program& program, const Bindings& bindings) {
  constexpr float kFactors[] = {0.75f, 1.25f};
  for_each_row(program, bindings, [&](float* row, int64_t width) {
    for (int64_t i = 0; i < width; ++i) row[i] *= kFactors[i % 2];
  });
}

bool plant(float value, const Program& program, const Bindings& bindings) {
  bool planted = false;
  for_each_row(program, bindings, [&](float* row, int64_t width) {
    row[width / 2] = value;
    planted = true;
  });
  return planted;
}

}  // namespace troika::device::faulty
