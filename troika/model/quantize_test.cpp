#include "troika/model/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "troika/model/k_quants.h"

namespace troika::model {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_values(size_t n, float size) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> values(-size, size);
  std::vector<float> out(n);
  for (float& value : out) value = values(random);
  return out;
}

std::vector<std::byte> to_bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(F16, KnownValues) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xc000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x0400), 0x1p-14f);
  EXPECT_EQ(f16_to_f32(0x7c00), kInfinity);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7e01)));
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
}

TEST(F16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), bits);
    }
  }
}

// Against the definition: of the neighbours of a value the nearer, of two equally near the even
// one.
TEST(F16, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = f16_to_f32(bits);
    const float high = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: floats have bits to spare
    ASSERT_EQ(f32_to_f16(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), bits + 1) << bits;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(1e-30f), 0);
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(kInfinity), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(static_cast<uint16_t>(bits))), bits);
  }
}

TEST(Blocks, Q4_0ByHand) {
  auto block = to_bytes({0x00, 0xb8});  // d = -0.5
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | ((15 - i) << 4)));
  std::vector<float> out(32);
  dequantize_row(TensorType::kQ4_0, block.data(), out);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], -0.5f * static_cast<float>(i - 8));
    EXPECT_EQ(out[static_cast<size_t>(i) + 16], -0.5f * static_cast<float>(7 - i));
  }
}

TEST(Blocks, Q4_1ByHand) {
  auto block = to_bytes({0x00, 0x40, 0x00, 0xbc});  // d = 2, m = -1
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | ((15 - i) << 4)));
  std::vector<float> out(32);
  dequantize_row(TensorType::kQ4_1, block.data(), out);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 2.0f * static_cast<float>(i) - 1);
    EXPECT_EQ(out[static_cast<size_t>(i) + 16], 2.0f * static_cast<float>(15 - i) - 1);
  }
}

TEST(Blocks, Q8_0ByHand) {
  auto block = to_bytes({0x00, 0x34});  // d = 0.25
  for (int i = 0; i < 32; ++i) block.push_back(static_cast<std::byte>(static_cast<int8_t>(i - 16)));
  std::vector<float> out(32);
  dequantize_row(TensorType::kQ8_0, block.data(), out);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 0.25f * static_cast<float>(i - 16));
  }
}

class EveryType : public ::testing::TestWithParam<TensorType> {};

// Half a step of the block, plus what rounding the scale to half precision moves its levels.
float error_bound(TensorType type, std::span<const float> block) {
  const auto [low, high] = std::minmax_element(block.begin(), block.end());
  const float largest = std::max(std::fabs(*low), std::fabs(*high));
  switch (type) {
    case TensorType::kF32:
      return 0;
    case TensorType::kF16:
      return largest * 0x1p-11f;
    case TensorType::kBF16:
      return largest * 0x1p-8f;
    case TensorType::kQ4_0:
      return largest / 8 * 1.001f;  // the far end has no level of its own
    case TensorType::kQ4_1:
      return (*high - *low) / 30 + largest * 0x1p-9f;
    case TensorType::kQ8_0:
      return largest / 254 + largest * 0x1p-10f;
    case TensorType::kQ4_K:
    case TensorType::kQ6_K:
      break;  // see KQuants
  }
  return 0;
}

TEST_P(EveryType, RoundTripStaysInItsBound) {
  const TensorType type = GetParam();
  if (traits(type).block_weights == kSuperBlock) GTEST_SKIP() << "its bound is in KQuants";
  const std::vector<float> values = random_values(32 * 200, 3.0f);
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(type, 32 * 200)));
  quantize_row(type, values, row.data());
  std::vector<float> back(values.size());
  dequantize_row(type, row.data(), back);
  for (size_t i = 0; i < values.size(); i += 32) {
    const float bound = error_bound(type, std::span(values).subspan(i, 32));
    for (size_t j = i; j < i + 32; ++j) ASSERT_NEAR(back[j], values[j], bound) << j;
  }
  // Quantizing what was quantized changes nothing much: the levels are met again.
  std::vector<std::byte> again(row.size());
  quantize_row(type, back, again.data());
  std::vector<float> twice(values.size());
  dequantize_row(type, again.data(), twice);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(twice[i], back[i], 0.01f);
}

TEST_P(EveryType, ZerosStayZeros) {
  const std::vector<float> zeros(512);
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(GetParam(), 512)));
  quantize_row(GetParam(), zeros, row.data());
  std::vector<float> back(512, 1.0f);
  dequantize_row(GetParam(), row.data(), back);
  EXPECT_EQ(back, zeros);
}

TEST_P(EveryType, FindsOneBadNumberAnywhere) {
  const TensorType type = GetParam();
  const TypeTraits& t = traits(type);
  const int64_t cols = std::max(96, 3 * t.block_weights);
  const std::vector<float> values = random_values(static_cast<size_t>(cols), 3.0f);
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(type, cols)));
  quantize_row(type, values, row.data());
  ASSERT_TRUE(row_is_finite(type, row.data(), cols));
  const int64_t blocks = cols / t.block_weights;
  const int fields = type == TensorType::kQ4_1 || type == TensorType::kQ4_K ? 2 : 1;
  const int first = type == TensorType::kQ6_K ? 208 : 0;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int field = 0; field < fields; ++field) {
      for (const float bad : {kInfinity, -kInfinity, kNaN}) {
        std::vector<std::byte> broken = row;
        std::byte* at = broken.data() + block * t.block_bytes + first + 2 * field;
        const uint32_t f32 = std::bit_cast<uint32_t>(bad);
        const uint16_t f16 = type == TensorType::kBF16 ? f32_to_bf16(bad) : f32_to_f16(bad);
        std::memcpy(at, type == TensorType::kF32 ? static_cast<const void*>(&f32) : &f16,
                    type == TensorType::kF32 ? 4 : 2);
        ASSERT_FALSE(row_is_finite(type, broken.data(), cols)) << block << ' ' << field;
      }
    }
  }
}

TEST(TensorTypes, NamesAndIdsAgree) {
  for (const TensorType type : kTensorTypes) {
    EXPECT_EQ(type_from_name(traits(type).name), type);
    EXPECT_EQ(gguf_type_name(static_cast<uint32_t>(type)), traits(type).name);
    EXPECT_EQ(traits_of(static_cast<uint32_t>(type))->block_bytes, traits(type).block_bytes);
  }
  EXPECT_EQ(type_from_name("q4_0"), TensorType::kQ4_0);
  EXPECT_EQ(type_from_name("q6_k"), TensorType::kQ6_K);
  EXPECT_FALSE(type_from_name("Q5_K"));
  EXPECT_FALSE(type_from_name(""));
  EXPECT_EQ(traits_of(12)->type, TensorType::kQ4_K);
  EXPECT_FALSE(traits_of(13));
}

INSTANTIATE_TEST_SUITE_P(Types, EveryType, ::testing::ValuesIn(kTensorTypes),
                         [](const auto& one) { return std::string(traits(one.param).name); });

}  // namespace
}  // namespace troika::model
