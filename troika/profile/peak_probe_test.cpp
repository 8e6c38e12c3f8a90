#include "troika/profile/peak_probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace troika::profile {
namespace {

TEST(PeakProbe, MeasuresSomethingPossible) {
  const Result<double> gbps = measure_read_gbps(1, 16 << 20);
  ASSERT_TRUE(gbps.has_value()) << gbps.error().message;
  EXPECT_GT(*gbps, 0.01);
  EXPECT_LT(*gbps, 10000);
  for (const int threads : {1, 2}) {
    const Result<double> gflops = measure_fma_gflops(threads);
    ASSERT_TRUE(gflops.has_value()) << gflops.error().message;
    EXPECT_GT(*gflops, 0.01);
    EXPECT_LT(*gflops, 10000 * threads);
  }
}

TEST(PeakProbe, EndsWhenItIsToldTo) {
  std::atomic<bool> cancel{true};
  EXPECT_EQ(measure_read_gbps(2, 16 << 20, &cancel).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(measure_fma_gflops(2, &cancel).error().code, ErrorCode::kCancelled);
  cancel = false;
  EXPECT_TRUE(measure_read_gbps(2, 1 << 20, &cancel).has_value());
  // Far more to read than fits the time until the flag is set.
  std::thread other([&cancel] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel = true;
  });
  const auto interrupted = measure_read_gbps(2, 256 << 20, &cancel);
  other.join();
  ASSERT_FALSE(interrupted.has_value());
  EXPECT_EQ(interrupted.error().code, ErrorCode::kCancelled);
}

TEST(PeakProbe, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(measure_read_gbps(0, 1 << 20).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_read_gbps(1, 100).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_read_gbps(1, -1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_read_gbps(1, int64_t{1} << 61).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(measure_fma_gflops(0).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_fma_gflops(1 << 20).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::profile
