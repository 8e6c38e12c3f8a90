#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "troika/device/cpu/kernels/kernels_reference.h"

namespace troika::device::cpu::testing {
namespace {

class ElementwiseTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};

constexpr int64_t kSizes[] = {1, 2, 7, 8, 15, 16, 17, 64, 100, 576, 577, 1536};

TEST_P(ElementwiseTest, RmsNorm) {
  Random random(1);
  for (const int64_t n : kSizes) {
    std::vector<float> x = random.floats(n);
    const std::vector<float> weight = random.floats(n);
    double squares = 0;
    for (const float f : x) squares += static_cast<double>(f) * f;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); ++i) expected.push_back(x[i] * scale * weight[i]);
    std::vector<float> y(x.size());
    table().rms_norm(x.data(), weight.data(), 1e-5f, n, y.data());
    EXPECT_LT(nmse(y, expected), 1e-13) << n;
    table().rms_norm(x.data(), weight.data(), 1e-5f, n, x.data());
    EXPECT_TRUE(same_bits(x.data(), y.data(), n)) << "in place, " << n;
  }
}

TEST_P(ElementwiseTest, SiluMul) {
  // Within 4 units in the last place where exp(-z) has any say; -0 or tiny below e^-87.
  std::vector<float> gate, up;
  for (double z = -120; z < 120; z += 0.0137) gate.push_back(static_cast<float>(z));
  for (const float z : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e30f, -1e30f}) gate.push_back(z);
  up.assign(gate.size(), 1.5f);
  std::vector<float> y(gate.size());
  const auto n = static_cast<int64_t>(gate.size());
  table().silu_mul(gate.data(), up.data(), n, y.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double z = gate[i];
    const double expected = z / (1 + std::exp(-z)) * 1.5;
    EXPECT_NEAR(y[i], expected, std::abs(expected) * 4 * 0x1p-23 + 1e-35) << z;
  }
  const std::vector<float> before = y;
  table().silu_mul(gate.data(), up.data(), n, gate.data());
  EXPECT_TRUE(same_bits(gate.data(), before.data(), n));
  // The same bits wherever an element stands.
  for (size_t i = 0; i < 40; ++i) {
    const float z = static_cast<float>(-120 + 0.0137 * static_cast<double>(i * 100));
    float one = 0;
    table().silu_mul(&z, up.data(), 1, &one);
    EXPECT_EQ(one, y[i * 100]);
  }
}

TEST_P(ElementwiseTest, SiluOfNanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> gate(9, nan), up(9, 1.0f);
  std::vector<float> y(9);
  table().silu_mul(gate.data(), up.data(), 9, y.data());
  for (const float f : y) EXPECT_TRUE(std::isnan(f));
}

TEST_P(ElementwiseTest, Rope) {
  Random random(2);
  for (const RopePairs pairs : {RopePairs::kAdjacent, RopePairs::kHalves}) {
    for (const auto& [head_dim, rope_dim] :
         {std::pair<int64_t, int64_t>{64, 64}, {80, 32}, {6, 6}}) {
      constexpr int64_t kHeads = 3;
      const std::vector<float> before = random.floats(kHeads * head_dim);
      std::vector<float> x = before;
      std::vector<float> cos_sin;
      for (int64_t i = 0; i < rope_dim / 2; ++i) {
        cos_sin.push_back(std::cos(0.1f * static_cast<float>(i + 1)));
        cos_sin.push_back(std::sin(0.1f * static_cast<float>(i + 1)));
      }
      table().rope(x.data(), kHeads, head_dim, rope_dim, pairs, cos_sin.data());
      std::vector<double> expected(before.begin(), before.end());
      for (int64_t h = 0; h < kHeads; ++h) {
        for (int64_t i = 0; i < rope_dim / 2; ++i) {
          const bool adjacent = pairs == RopePairs::kAdjacent;
          const auto a = static_cast<size_t>(h * head_dim + (adjacent ? 2 * i : i));
          const size_t b = a + static_cast<size_t>(adjacent ? 1 : rope_dim / 2);
          const double c = cos_sin[static_cast<size_t>(2 * i)];
          const double s = cos_sin[static_cast<size_t>(2 * i + 1)];
          expected[a] = before[a] * c - before[b] * s;
          expected[b] = before[a] * s + before[b] * c;
        }
      }
      EXPECT_LT(nmse(x, expected), 1e-13);
    }
  }
}

TEST_P(ElementwiseTest, Add) {
  Random random(3);
  for (const int64_t n : kSizes) {
    const std::vector<float> a = random.floats(n), b = random.floats(n);
    std::vector<float> y(a.size() + 1, 9.0f);
    table().add(a.data(), b.data(), n, y.data());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(y[i], a[i] + b[i]);
    EXPECT_EQ(y.back(), 9.0f);
  }
}

TEST_P(ElementwiseTest, FmaBurstCountsItsWork) {
  float sink[3] = {1, 0.5f, 1};
  const double one = table().fma_burst(1, sink);
  EXPECT_GT(one, 0);
  EXPECT_EQ(table().fma_burst(1000, sink), 1000 * one);
  EXPECT_TRUE(std::isfinite(sink[0]));
}

INSTANTIATE_TEST_SUITE_P(Kernels, ElementwiseTest,
                         ::testing::ValuesIn(available_kernels().begin(),
                                             available_kernels().end()),
                         [](const ::testing::TestParamInfo<const KernelTable*>& p) {
                           return std::string(p.param->name);
                         });

TEST(Kernels, TablesAreComplete) {
  const auto tables = available_kernels();
  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.back()->name, "portable");
  for (const KernelTable* table : tables) {
    EXPECT_EQ(find_kernels(table->name), table);
    EXPECT_TRUE(table->matmul && table->matmul_scratch_floats && table->rms_norm && table->rope &&
                table->silu_mul && table->add && table->dequantize_row && table->attention &&
                table->attention_scratch_floats && table->kv_write && table->fma_burst);
  }
  EXPECT_EQ(find_kernels("mmx"), nullptr);
}

}  // namespace
}  // namespace troika::device::cpu::testing
