#include <gtest/gtest.h>

#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/kernels/vec_portable.h"
// Needs what stands above it.
#include "troika/device/cpu/kernels/ahead.inl"

namespace troika::device::cpu {
namespace {

constexpr int64_t kBlock = 20;  // bytes that a product asks for at a time
constexpr int64_t kOutputs = 40;

// A product in the middle of a weight, and where it goes on.
struct Walk {
  explicit Walk(int64_t stride) : stored(static_cast<size_t>(2 * kOutputs * stride)) {
    args.w = stored.data();
    args.w_stride = stride;
    args.n = kOutputs;
    args.next_w = next.data();
  }
  std::vector<std::byte> stored;
  std::vector<std::byte> next = std::vector<std::byte>(65536);
  MatMulArgs args;
};

TEST(Ahead, OutputsThatLieTogetherAreFollowedByWhatIsReadNext) {
  for (const int64_t row : {360, 1160, 4600}) {
    Walk walk(row);
    Ahead ahead = ahead_of(walk.args, row, 0);
    int64_t at = kPrefetchBytes;
    for (; at < kOutputs * row; at += kBlock) {
      ASSERT_EQ(ahead.at, walk.stored.data() + at) << row;
      ahead.fetch(kBlock);
    }
    at -= kOutputs * row;
    EXPECT_EQ(ahead.at, walk.next.data() + at) << row;
    ahead.fetch(kBlock);
    EXPECT_EQ(ahead.at, walk.next.data() + at + kBlock) << row;
  }
}

// The last outputs of a product are nearer to its end than the walk is ahead.
TEST(Ahead, BeginsInWhatIsReadNextNearTheEnd) {
  constexpr int64_t kRow = 360;
  const Walk walk(kRow);
  EXPECT_EQ(ahead_of(walk.args, kRow, kOutputs - 1).at, walk.next.data() + kPrefetchBytes - kRow);
}

TEST(Ahead, WalksOnWhereNothingIsKnownToFollow) {
  constexpr int64_t kRow = 360;
  Walk walk(kRow);
  walk.args.next_w = nullptr;
  Ahead ahead = ahead_of(walk.args, kRow, kOutputs - 1);
  ahead.fetch(kBlock);
  EXPECT_EQ(ahead.at, walk.stored.data() + (kOutputs - 1) * kRow + kPrefetchBytes + kBlock);
}

TEST(Ahead, LeavesOutWhatLiesBetweenRows) {
  constexpr int64_t kRow = 3600;
  constexpr int64_t kStride = 8000;
  const Walk walk(kStride);
  Ahead ahead = ahead_of(walk.args, kRow, 1);
  for (int64_t at = kPrefetchBytes; at < 10 * kRow; at += kBlock) {
    ASSERT_EQ(ahead.at, walk.stored.data() + (1 + at / kRow) * kStride + at % kRow);
    ahead.fetch(kBlock);
  }
}

}  // namespace
}  // namespace troika::device::cpu
