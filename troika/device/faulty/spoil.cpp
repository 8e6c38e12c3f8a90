#include "troika/device/faulty/spoil.h"

#include "troika/device/result_check.h"

namespace troika::device::faulty {
void distort(const Program& program, const Bindings& bindings) {
  constexpr float kFactors[] = {0.75f, 1.25f};
  for_each_output_row(program, bindings,
                      [&](const graph::Op&, const graph::Tensor& output, int64_t, float* values) {
                        for (int64_t i = 0; i < output.width; ++i) values[i] *= kFactors[i % 2];
                      });
}

bool plant(float value, const Program& program, const Bindings& bindings) {
  bool planted = false;
  for_each_output_row(program, bindings,
                      [&](const graph::Op&, const graph::Tensor& output, int64_t, float* values) {
                        values[output.width / 2] = value;
                        planted = true;
                      });
  return planted;
}

}  // namespace troika::device::faulty
