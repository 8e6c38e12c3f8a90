// Products through matrix units, with the units emulated: the values of the other kernels.
#include <gtest/gtest.h>

#include "troika/device/opencl/trial.h"

namespace troika::device::opencl {
namespace {

constexpr model::TensorType kType = model::TensorType::kQ4_0;

TEST(UnitProducts, OfSomeRowsAreThoseOfTheOtherKernels) {
  OpenClOptions options;
  options.gpu_kernels = true;
  const auto session = open_session(options);
  if (!session) GTEST_SKIP() << session.error().message;
  Programs programs(session->context.get(), session->facts, "");
  KernelSet kernels(DeviceClass::kGpu, programs);
  kernels.emulate_units();
  constexpr int64_t kOutputs = 112;  // 7 tiles: the last work-group has not enough
  constexpr int64_t kInputs = 256;
  Trial trial(*session);
  ASSERT_TRUE(trial.prepare(kType, kOutputs, kInputs, true).has_value());
  ASSERT_TRUE(trial.randomize().has_value());
  const RowsShape shape{8, 4};
  const auto limbs = trial.room(limb_floats(shape.rows, kInputs));
  ASSERT_TRUE(limbs.has_value());
  for (const int64_t rows : {2, 5, 8}) {
    SCOPED_TRACE(rows);
    const auto by_units = [&](int i) {
      return launch_rows(session->queue.get(), kernels, shape, trial.task(kType, rows, i, false),
                         *limbs);
    };
    const auto by_others = [&](int i) {
      return launch_few(session->queue.get(), kernels, kernels.few_shape(kType, rows, false),
                        trial.task(kType, rows, i, false));
    };
    EXPECT_TRUE(trial.agree(rows * kOutputs, by_units, by_others));
    const auto others = [&](int i) {
      return launch_few(session->queue.get(), kernels, kernels.few_shape(kType, rows, false),
                        trial.task(kType, rows - 1, i, false));
    };
    EXPECT_FALSE(trial.agree(rows * kOutputs, by_units, others)) << "a row less";
  }
}

}  // namespace
}  // namespace troika::device::opencl
