#include "troika/device/systolic/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "troika/device/cpu/kernels/kernels_reference.h"
#include "troika/device/systolic/half.h"
#include "troika/model/levels.h"
#include "troika/model/quantize.h"

namespace troika::device::systolic {
namespace {

using cpu::testing::block_weights;
using cpu::testing::half_value;
using cpu::testing::is_plain;
using cpu::testing::kAllTypes;
using cpu::testing::nmse;
using cpu::testing::Random;
using cpu::testing::weight_at;
using model::TensorType;

// A value is rounded to 11 bits: its relative error lies within 2^-11, and has a mean square of at
// most a third of that squared. Inputs are rounded, and weights of plain floats; the errors are
// independent.
constexpr double kHalfNmse = 1.0 / 3.0 / (2048.0 * 2048.0);
// What sums in FP32 add, chains being 32 and K / 32 long; as for the `cpu` kernels.
constexpr double kFloatNmse = 1e-12;
constexpr float kUntouched = 12345.0f;

double rounded(float value) { return half_value(model::f32_to_f16(value)); }

TEST(RoundToHalf, GivesTheNearestHalfOfEveryFloat) {
  const auto check = [](float value) {
    const float expected = model::f16_to_f32(model::f32_to_f16(value));
    const float got = round_to_half(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(got));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << value;
    }
  };
  // Every half, the middles between two of them, and the floats beside these.
  for (uint32_t half = 0; half < 65536; ++half) {
    const float value = model::f16_to_f32(static_cast<uint16_t>(half));
    const float next = model::f16_to_f32(static_cast<uint16_t>(half + 1));
    const float middle = value / 2 + next / 2;
    for (const float x : {value, middle}) {
      check(x);
      check(std::nextafter(x, std::numeric_limits<float>::infinity()));
      check(std::nextafter(x, -std::numeric_limits<float>::infinity()));
    }
  }
  Random random(1);
  for (int i = 0; i < 1'000'000; ++i) check(std::bit_cast<float>(random.bits()));
  EXPECT_EQ(round_to_half(65519.996f), 65504.0f);
  EXPECT_TRUE(std::isinf(round_to_half(65520.0f)));
  EXPECT_TRUE(std::signbit(round_to_half(-1e-30f)));
}

// Subnormal halves and the largest ones among them.
template <class T>
T random_tile(Random& random) {
  T tile;
  for (auto& row : tile.at) {
    for (float& value : row) {
      const auto bits = static_cast<uint16_t>(random.bits());
      value = model::f16_to_f32((bits & 0x7c00) == 0x7c00 ? bits & 0x83ff : bits);
    }
  }
  return tile;
}

void fill(Random& random, float (&values)[kTile]) {
  const std::vector<float> all = random.floats(kTile);
  std::copy(all.begin(), all.end(), values);
}

TEST(MultiplyTile, GivesTheSameBitsWithEveryInstructionSet) {
  Random random(2);
  for (const cpu::KernelTable* kernels : cpu::available_kernels()) {
    auto x = random_tile<InputTile>(random);
    auto w = random_tile<WeightTile>(random);
    fill(random, x.totals);
    fill(random, w.scale);
    fill(random, w.offset);
    auto expected = random_tile<Tile>(random);
    Tile got = expected;
    multiply_tile_portable(x, w, expected);
    multiply_tile_for(kernels->name)(x, w, got);
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits of floats are meant.
    EXPECT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << kernels->name;
  }
}

// A product with more room around its rows than it may touch.
struct Problem {
  Problem(TensorType type, int64_t rows, int64_t outputs, int64_t depth, uint32_t seed)
      : m(rows), n(outputs), k(depth), x_stride(depth + 3), y_stride(outputs + 5) {
    Random random(seed);
    x = random.floats(m * x_stride);
    weight.name = "w";
    weight.type = type;
    weight.rows = n;
    weight.cols = k;
    stored.resize(static_cast<size_t>(weight.bytes()));
    weight.data = stored.data();
    for (int64_t i = 0; i < n; ++i) {
      random.fill_row(type, stored.data() + i * weight.row_bytes(), k);
    }
  }

  std::vector<float> run(Array& array, int64_t max_rows, Stationary stationary) {
    const auto tiled = TiledWeight::make({&weight, 0, n, 0, k});
    EXPECT_TRUE(tiled.has_value());
    std::vector<float> y(static_cast<size_t>(m * y_stride), kUntouched);
    array.reserve(max_rows, *tiled, stationary);
    array.load_inputs(x.data(), x_stride, m, k, max_rows);
    counts = array.multiply(*tiled, stationary, y.data(), y_stride);
    return y;
  }

  // Products of values as they are stored, or with inputs and levels rounded to halves.
  std::vector<double> reference(bool halves) const {
    std::vector<double> y(static_cast<size_t>(m * n));
    std::vector<float> levels(static_cast<size_t>(k));
    std::vector<model::LevelScale> groups(static_cast<size_t>(tiles_over(k)));
    for (int64_t j = 0; j < n; ++j) {
      const std::byte* const row = stored.data() + j * weight.row_bytes();
      model::row_levels(weight.type, row, levels, groups);
      for (int64_t i = 0; i < m; ++i) {
        double& sum = y[static_cast<size_t>(i * n + j)];
        for (int64_t c = 0; c < k; ++c) {
          const float a = x[static_cast<size_t>(i * x_stride + c)];
          const auto [scale, offset] = groups[static_cast<size_t>(c / kTile)];
          sum += halves ? rounded(a) * (scale * rounded(levels[static_cast<size_t>(c)]) + offset)
                        : static_cast<double>(a) * weight_at(weight.type, row, c);
        }
      }
    }
    return y;
  }

  std::vector<float> results(const std::vector<float>& y) const {
    std::vector<float> packed;
    for (int64_t i = 0; i < m; ++i) {
      const auto row = y.begin() + i * y_stride;
      packed.insert(packed.end(), row, row + n);
    }
    return packed;
  }

  int64_t m, n, k, x_stride, y_stride;
  model::Weight weight;
  std::vector<float> x;
  std::vector<std::byte> stored;
  TileCounts counts;
};

struct Shape {
  int64_t m, max_rows, n, k;
};

std::vector<Shape> shapes(TensorType type) {
  if (block_weights(type) == 256) {
    return {{1, 1, 96, 512}, {31, 32, 33, 256}, {33, 64, 70, 768}, {65, 128, 1, 256}};
  }
  std::vector<Shape> shapes = {{1, 1, 32, 32},    {1, 32, 70, 96},   {31, 32, 33, 64},
                               {32, 32, 96, 160}, {33, 64, 31, 576}, {65, 128, 1, 32}};
  if (is_plain(type)) {
    for (const int64_t k : {1, 7, 31, 33, 577}) shapes.push_back({33, 64, 65, k});
  }
  return shapes;
}

class ArrayTest : public ::testing::TestWithParam<TensorType> {};

TEST_P(ArrayTest, ComputesEveryShapeTileByTile) {
  Array array(*cpu::available_kernels().front());  // one for all: nothing may stay behind
  uint32_t seed = 0;
  for (const Shape& s : shapes(GetParam())) {
    SCOPED_TRACE(fmt::format("m={} of {} n={} k={}", s.m, s.max_rows, s.n, s.k));
    Problem p(GetParam(), s.m, s.n, s.k, ++seed);
    const std::vector<float> y = p.run(array, s.max_rows, Stationary::kWeights);
    EXPECT_LT(nmse(p.results(y), p.reference(true)), kFloatNmse);
    // Weights with an offset for each block do not have a mean of zero: with one row, all outputs
    // may be small beside their terms at once.
    const bool may_cancel = s.m == 1 && model::traits(GetParam()).block_weights > 32;
    const int operands = is_plain(GetParam()) ? 2 : 1;
    EXPECT_LT(nmse(p.results(y), p.reference(false)), (may_cancel ? 4 : operands) * kHalfNmse);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = p.n; j < p.y_stride; ++j) {
        ASSERT_EQ(y[static_cast<size_t>(i * p.y_stride + j)], kUntouched);
      }
    }
    const int64_t m_tiles = (s.max_rows + 31) / 32;
    const int64_t n_tiles = (s.n + 31) / 32;
    const int64_t k_tiles = (s.k + 31) / 32;
    EXPECT_EQ(p.counts.tiles, m_tiles * n_tiles * k_tiles);
    EXPECT_EQ(p.counts.loads, n_tiles * k_tiles);

    // The other operand in place: the same bits.
    EXPECT_EQ(p.run(array, s.max_rows, Stationary::kInputs), y);
    EXPECT_EQ(p.counts.tiles, m_tiles * n_tiles * k_tiles);
    EXPECT_EQ(p.counts.loads, m_tiles * k_tiles);
  }
}

// Blocks' weights are not rounded; of Q6_K the largest levels, of 12 and 13 bits, are.
TEST_P(ArrayTest, ProductsOfBlocksAndHalvesAreExact) {
  if (GetParam() == TensorType::kF32) GTEST_SKIP() << "rounded to FP16";
  Array array(*cpu::available_kernels().front());
  Problem p(GetParam(), 33, 70, block_weights(GetParam()) == 256 ? 768 : 160, 9);
  for (float& value : p.x) value = round_to_half(value);
  const std::vector<float> y = p.run(array, 64, Stationary::kWeights);
  EXPECT_LT(nmse(p.results(y), p.reference(false)),
            GetParam() == TensorType::kQ6_K ? kHalfNmse / 3 : kFloatNmse);
}

TEST_P(ArrayTest, ARowHasTheSameBitsAloneAndWithOthers) {
  Array array(*cpu::available_kernels().front());
  const int64_t k = block_weights(GetParam()) == 256 ? 256 : 96;
  Problem p(GetParam(), 40, 50, k, 7);
  const std::vector<float> together = p.results(p.run(array, 64, Stationary::kWeights));
  const std::vector<float> all = p.x;
  for (const int64_t row : {0, 31, 32, 39}) {
    Problem alone(GetParam(), 1, 50, k, 7);
    alone.weight.data = p.stored.data();
    std::copy_n(all.begin() + row * p.x_stride, p.k, alone.x.begin());
    const std::vector<float> y = alone.results(alone.run(array, 1, Stationary::kWeights));
    EXPECT_TRUE(std::equal(y.begin(), y.end(), together.begin() + row * p.n)) << row;
  }
}

TEST_P(ArrayTest, SlicesOfAWeightMakeUpTheWhole) {
  Array array(*cpu::available_kernels().front());
  const int64_t border = block_weights(GetParam()) == 256 ? 256 : 96;
  const int64_t k_all = block_weights(GetParam()) == 256 ? 768 : 160;
  Problem p(GetParam(), 3, 96, k_all, 8);
  const std::vector<float> whole = p.results(p.run(array, 32, Stationary::kWeights));
  const auto part = [&](int64_t n_begin, int64_t n, int64_t k_begin, int64_t k) {
    const auto tiled = TiledWeight::make({&p.weight, n_begin, n, k_begin, k});
    std::vector<float> y(static_cast<size_t>(p.m * n));
    array.load_inputs(p.x.data() + k_begin, p.x_stride, p.m, k, 32);
    array.multiply(*tiled, Stationary::kWeights, y.data(), n);
    return y;
  };
  const std::vector<float> right = part(32, 64, 0, k_all);
  for (int64_t i = 0; i < p.m; ++i) {
    EXPECT_TRUE(std::equal(right.begin() + i * 64, right.begin() + (i + 1) * 64,
                           whole.begin() + i * 96 + 32));
  }
  const std::vector<float> first = part(0, 96, 0, border);
  const std::vector<float> last = part(0, 96, border, k_all - border);
  std::vector<float> sums;
  for (size_t i = 0; i < first.size(); ++i) sums.push_back(first[i] + last[i]);
  EXPECT_LT(nmse(sums, whole), kFloatNmse);
  EXPECT_GT(nmse(first, whole), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Types, ArrayTest, ::testing::ValuesIn(kAllTypes),
                         [](const auto& type) { return cpu::testing::name_of(type.param); });

TEST(TiledWeight, RefusesWhatFp16CannotHold) {
  for (const float bad : {65520.0f, -1e10f}) {
    Problem p(TensorType::kF32, 1, 40, 70, 3);
    std::memcpy(p.stored.data() + 35 * p.weight.row_bytes() + 69 * sizeof(float), &bad, sizeof bad);
    const auto tiled = TiledWeight::make({&p.weight, 0, 40, 0, 70});
    ASSERT_FALSE(tiled.has_value());
    EXPECT_EQ(tiled.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(tiled.error().message, ::testing::HasSubstr("row 35"));
    EXPECT_TRUE(TiledWeight::make({&p.weight, 0, 40, 0, 69}).has_value());
    EXPECT_TRUE(TiledWeight::make({&p.weight, 0, 35, 0, 70}).has_value());
  }
}

}  // namespace
}  // namespace troika::device::systolic
