#include "troika/device/cpu/packed_slices.h"

#include <gtest/gtest.h>

#include <cstring>

#include "troika/device/cpu/testing/slices.h"

namespace troika::device::cpu {
namespace {

using testing::Slices;

constexpr int64_t kRow = 34;  // bytes of 32 weights in Q8_0

TEST(PackedSlices, CopiesRowsThatLieApart) {
  Slices slices(5);
  slices.add(1, 3, 32, 32);
  std::vector<Step> steps = make_steps(slices.program);
  const BoundOp& product = steps[0].ops[0];
  EXPECT_EQ(product.weights, slices.at(1, 32));
  EXPECT_EQ(product.weights_stride, 2 * kRow);

  PackedSlices packed;
  packed.pack(steps, slices.program);
  EXPECT_EQ(product.weights_stride, kRow);
  for (int64_t n = 0; n < 3; ++n) {
    EXPECT_EQ(std::memcmp(product.weights + n * kRow, slices.at(1 + n, 32), kRow), 0) << n;
  }
  EXPECT_EQ(packed.bytes(), 3 * kRow);
}

TEST(PackedSlices, LeavesWholeRowsWhereTheyAre) {
  Slices slices(5);
  slices.add(1, 3, 0, 64);
  std::vector<Step> steps = make_steps(slices.program);
  PackedSlices packed;
  packed.pack(steps, slices.program);
  EXPECT_EQ(steps[0].ops[0].weights, slices.at(1, 0));
  EXPECT_EQ(packed.bytes(), 0);
}

// Where a weight is used many times, or little is read in vain.
TEST(PackedSlices, LeavesManyRowsAndLongOnes) {
  Slices many(5);
  many.add(1, 3, 32, 32);
  many.program.max_rows = 9;
  Slices long_ones(2, 8192);
  long_ones.add(0, 2, 0, 4096);
  for (const Slices* slices : {&many, &long_ones}) {
    std::vector<Step> steps = make_steps(slices->program);
    PackedSlices packed;
    packed.pack(steps, slices->program);
    EXPECT_EQ(steps[0].ops[0].weights_stride, slices->weight.row_bytes());
    EXPECT_EQ(packed.bytes(), 0);
  }
}

TEST(PackedSlices, KernelsShareACopyAndItGoesWithTheLast) {
  Slices slices(5);
  slices.add(1, 3, 32, 32);
  PackedSlices packed;
  std::vector<Step> one = make_steps(slices.program);
  packed.pack(one, slices.program);
  {
    std::vector<Step> other = make_steps(slices.program);
    packed.pack(other, slices.program);
    EXPECT_EQ(other[0].ops[0].weights, one[0].ops[0].weights);
    one.clear();
    EXPECT_EQ(packed.bytes(), 3 * kRow);
  }
  EXPECT_EQ(packed.bytes(), 0);
}

}  // namespace
}  // namespace troika::device::cpu
