#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "troika/device/cpu/kernels/kernels_reference.h"
#include "troika/model/quantize.h"

namespace troika::device::cpu::testing {
namespace {

// One product with more room around everything than the kernel may touch.
struct Problem {
  Problem(TensorType t, int64_t rows, int64_t outputs, int64_t depth, uint32_t seed)
      : type(t), m(rows), n(outputs), k(depth), x_stride(depth + 3), y_stride(outputs + 5) {
    Random random(seed);
    x = random.floats(m * x_stride);
    added = random.floats(m * y_stride);
    // Rows are only 2-byte aligned in a file: begin at an odd multiple of 2.
    w_stride = stored_bytes(type, k);
    stored.resize(static_cast<size_t>(n * w_stride + 2));
    for (int64_t i = 0; i < n; ++i) random.fill_row(type, w() + i * w_stride, k);
  }

  std::byte* w() { return stored.data() + 2; }

  // Rows m0 .. m0 + rows - 1 of outputs n0 .. n0 + outputs - 1 into y.
  void run(const KernelTable& table, int64_t m0, int64_t rows, int64_t n0, int64_t outputs,
           bool with_add, std::vector<float>& y) {
    const Scratch scratch(table.matmul_scratch_floats(rows, k));
    MatMulArgs args;
    args.x = x.data() + m0 * x_stride;
    args.x_stride = x_stride;
    args.m = rows;
    args.w = w() + n0 * w_stride;
    args.w_stride = w_stride;
    args.n = outputs;
    args.k = k;
    args.y = y.data() + m0 * y_stride + n0;
    args.y_stride = y_stride;
    if (with_add) args.add = added.data() + m0 * y_stride + n0;
    args.add_stride = y_stride;
    args.scratch = scratch.get();
    if (n0 % 2 == 0) args.next_w = stored.data();  // fetched, not computed with
    table.matmul(type, args);
  }

  std::vector<float> empty() const {
    return std::vector<float>(static_cast<size_t>(m * y_stride), kUntouched);
  }

  static constexpr float kUntouched = 12345.0f;
  TensorType type;
  int64_t m, n, k, x_stride, y_stride, w_stride = 0;
  std::vector<float> x, added;
  std::vector<std::byte> stored;
};

using MatMulParam = std::tuple<const KernelTable*, TensorType>;

class MatMulTest : public ::testing::TestWithParam<MatMulParam> {
 protected:
  const KernelTable& table() const { return *std::get<0>(GetParam()); }
  TensorType type() const { return std::get<1>(GetParam()); }
  std::vector<int64_t> depths() const {
    if (is_plain(type())) return {1, 7, 32, 33, 95, 576, 1025};
    if (block_weights(type()) == 256) return {256, 768, 1024, 1280, 2816};
    return {32, 96, 576, 1056, 1536};
  }
};

// Sums in float have a relative error of about 2^-24 sqrt(length of a chain); chains are at most
// 256 long (portable, one chunk of 1024 in 4 lanes), so 1e-6 of the norm is 3 times what to expect.
constexpr double kMaxNmse = 1e-12;

TEST_P(MatMulTest, EveryShapeGivesTheBitsOfOneOutputAlone) {
  constexpr int64_t kRows = 33;
  constexpr int64_t kOutputs = 70;
  for (const int64_t k : depths()) {
    Problem p(type(), kRows, kOutputs, k, static_cast<uint32_t>(k));
    std::vector<float> alone = p.empty();
    std::vector<float> got;
    std::vector<double> expected;
    for (int64_t m = 0; m < kRows; ++m) {
      for (int64_t n = 0; n < kOutputs; ++n) {
        p.run(table(), m, 1, n, 1, true, alone);
        const float* x = p.x.data() + m * p.x_stride;
        double sum = p.added[static_cast<size_t>(m * p.y_stride + n)];
        for (int64_t i = 0; i < k; ++i) {
          sum += static_cast<double>(x[i]) * weight_at(type(), p.w() + n * p.w_stride, i);
        }
        expected.push_back(sum);
        got.push_back(alone[static_cast<size_t>(m * p.y_stride + n)]);
      }
    }
    ASSERT_LT(nmse(got, expected), kMaxNmse) << "k=" << k;

    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 70}) {
        const int64_t m0 = kRows - m;
        const int64_t n0 = (kOutputs - n) / 2;
        std::vector<float> y = p.empty();
        p.run(table(), m0, m, n0, n, true, y);
        for (int64_t i = 0; i < kRows; ++i) {
          for (int64_t j = 0; j < p.y_stride; ++j) {
            const bool inside = i >= m0 && j >= n0 && j < n0 + n;
            const auto at = static_cast<size_t>(i * p.y_stride + j);
            ASSERT_EQ(y[at], inside ? alone[at] : Problem::kUntouched)
                << "m=" << m << " n=" << n << " k=" << k << " row " << i << " output " << j;
          }
        }
      }
    }
  }
}

TEST_P(MatMulTest, AddsInPlace) {
  for (const int64_t m : {1, 40}) {
    Problem p(type(), m, 50, 1536, 5);
    std::vector<float> apart = p.empty();
    p.run(table(), 0, m, 0, 50, true, apart);
    std::vector<float> plain = p.empty();
    p.run(table(), 0, m, 0, 50, false, plain);
    std::vector<float> in_place = p.added;
    const Scratch scratch(table().matmul_scratch_floats(m, p.k));
    const MatMulArgs args{.x = p.x.data(),
                          .x_stride = p.x_stride,
                          .m = m,
                          .w = p.w(),
                          .w_stride = p.w_stride,
                          .n = 50,
                          .k = p.k,
                          .y = in_place.data(),
                          .y_stride = p.y_stride,
                          .add = in_place.data(),
                          .add_stride = p.y_stride,
                          .scratch = scratch.get()};
    table().matmul(type(), args);
    for (int64_t i = 0; i < m; ++i) {
      const auto row = static_cast<size_t>(i * p.y_stride);
      ASSERT_TRUE(same_bits(&in_place[row], &apart[row], 50));
      for (size_t j = row; j < row + 50; ++j) {
        ASSERT_NEAR(plain[j] + p.added[j], apart[j], 1e-4 * (1 + std::abs(apart[j])));
      }
    }
  }
}

TEST_P(MatMulTest, LongSums) {
  constexpr int64_t kOutputs = 19;
  Problem p(type(), 20, kOutputs, 16384, 6);
  std::vector<float> batch = p.empty();
  p.run(table(), 0, 20, 0, kOutputs, false, batch);
  std::vector<float> got;
  std::vector<double> expected;
  for (int64_t m = 0; m < 20; m += 19) {
    std::vector<float> alone = p.empty();
    p.run(table(), m, 1, 0, kOutputs, false, alone);
    ASSERT_TRUE(same_bits(&alone[static_cast<size_t>(m * p.y_stride)],
                          &batch[static_cast<size_t>(m * p.y_stride)], kOutputs));
    for (int64_t n = 0; n < kOutputs; ++n) {
      double sum = 0;
      for (int64_t i = 0; i < p.k; ++i) {
        sum += static_cast<double>(p.x[static_cast<size_t>(m * p.x_stride + i)]) *
               weight_at(type(), p.w() + n * p.w_stride, i);
      }
      expected.push_back(sum);
      got.push_back(alone[static_cast<size_t>(m * p.y_stride + n)]);
    }
  }
  EXPECT_LT(nmse(got, expected), kMaxNmse);
  EXPECT_LE(table().matmul_scratch_floats(512, 16384) * 4, 5 << 18) << "more than 1.25 MB";
}

// It is reserved for the longest pass, and shorter ones use it.
TEST_P(MatMulTest, ScratchOfManyRowsIsEnoughForFewer) {
  for (const int64_t k : {64, 576, 1536, 4096, 8192}) {
    int64_t most = 0;
    for (int64_t m = 1; m <= 1024; ++m) {
      const int64_t floats = table().matmul_scratch_floats(m, k);
      EXPECT_GE(floats, most) << m << " rows of " << k;
      most = floats;
    }
  }
}

TEST_P(MatMulTest, KeepsTinyAndHugeValues) {
  // 2^-140 is a subnormal float: sums of a few such products are exact multiples of 2^-149.
  const int64_t k = std::max<int64_t>(96, block_weights(type()));
  for (const float factor : {0x1p-140f, 0x1p100f}) {
    Problem p(type(), 17, 3, k, 7);
    for (float& f : p.x) f = std::round(f * 4) * factor;
    std::vector<float> batch = p.empty();
    p.run(table(), 0, 17, 0, 3, false, batch);
    for (int64_t m = 0; m < 17; ++m) {
      std::vector<float> alone = p.empty();
      p.run(table(), m, 1, 0, 3, false, alone);
      for (int64_t n = 0; n < 3; ++n) {
        const auto at = static_cast<size_t>(m * p.y_stride + n);
        double sum = 0, size = 0;
        for (int64_t i = 0; i < p.k; ++i) {
          const double t = static_cast<double>(p.x[static_cast<size_t>(m * p.x_stride + i)]) *
                           weight_at(type(), p.w() + n * p.w_stride, i);
          sum += t;
          size += std::abs(t);
        }
        ASSERT_EQ(alone[at], batch[at]);
        ASSERT_NEAR(alone[at], sum, 1e-6 * size + 2 * static_cast<double>(k) * 0x1p-149);
      }
    }
  }
}

TEST_P(MatMulTest, DequantizesAsDefined) {
  for (const int64_t n : depths()) {
    Problem p(type(), 1, 1, n, 8);
    std::vector<float> y(static_cast<size_t>(n) + 1, Problem::kUntouched);
    table().dequantize_row(type(), p.w(), n, y.data());
    std::vector<float> of_model(static_cast<size_t>(n));
    model::dequantize_row(type(), p.w(), of_model);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[static_cast<size_t>(i)], weight_at(type(), p.w(), i)) << i;
      ASSERT_EQ(y[static_cast<size_t>(i)], of_model[static_cast<size_t>(i)]) << i;
    }
    ASSERT_EQ(y.back(), Problem::kUntouched);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, MatMulTest,
                         ::testing::Combine(::testing::ValuesIn(available_kernels().begin(),
                                                                available_kernels().end()),
                                            ::testing::ValuesIn(kAllTypes)),
                         [](const ::testing::TestParamInfo<MatMulParam>& p) {
                           return std::string(std::get<0>(p.param)->name) + "_" +
                                  name_of(std::get<1>(p.param));
                         });

}  // namespace
}  // namespace troika::device::cpu::testing
