#include "troika/model/k_quants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "troika/model/quantize.h"

namespace troika::model {
namespace {

constexpr size_t kWeights = kSuperBlock;

void put_half(std::byte* to, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(to, &bits, sizeof(bits));
}

TEST(KQuants, SixBitsFillTwelveBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    SixBits scales{};
    SixBits minima{};
    for (uint8_t& v : scales) v = static_cast<uint8_t>(random() % 64);
    for (uint8_t& v : minima) v = static_cast<uint8_t>(random() % 64);
    std::byte packed[12];
    pack_scales(scales, minima, packed);
    SixBits scales_again{};
    SixBits minima_again{};
    unpack_scales(packed, scales_again, minima_again);
    ASSERT_EQ(scales_again, scales);
    ASSERT_EQ(minima_again, minima);
  }
}

// Bit for bit as the format says, part after part.
TEST(KQuants, Q4KByHand) {
  std::vector<std::byte> block(Q4KBlock::kBytes);
  put_half(block.data(), 0.5f);
  put_half(block.data() + 2, 0.25f);
  // Scales 1, 2, 3, 4, 21, 38, 55, 63; minima 8, 7, 6, 5, 62, 45, 28, 11.
  const int packed[12] = {1 | 1 << 6,  2 | 2 << 6,  3 | 3 << 6,  4 | 3 << 6,
                          8 | 3 << 6,  7 | 2 << 6,  6 | 1 << 6,  5 | 0 << 6,
                          5 | 14 << 4, 6 | 13 << 4, 7 | 12 << 4, 15 | 11 << 4};
  for (size_t i = 0; i < 12; ++i) block[4 + i] = static_cast<std::byte>(packed[i]);
  for (size_t i = 0; i < 128; ++i) block[16 + i] = static_cast<std::byte>(i * 37);
  std::vector<float> out(kWeights);
  dequantize_row(TensorType::kQ4_K, block.data(), out);
  const float scales[8] = {1, 2, 3, 4, 21, 38, 55, 63};
  const float minima[8] = {8, 7, 6, 5, 62, 45, 28, 11};
  for (size_t part = 0; part < 8; ++part) {
    for (size_t i = 0; i < 32; ++i) {
      const size_t byte = (part / 2 * 32 + i) * 37 % 256;
      const auto level = static_cast<float>(part % 2 == 0 ? byte % 16 : byte / 16);
      ASSERT_EQ(out[part * 32 + i], 0.5f * scales[part] * level - 0.25f * minima[part])
          << part << ' ' << i;
    }
  }
}

TEST(KQuants, Q6KByHand) {
  std::vector<std::byte> block(Q6KBlock::kBytes);
  for (size_t i = 0; i < 192; ++i) block[i] = static_cast<std::byte>(i * 89 + 5);
  for (size_t i = 0; i < 16; ++i) {
    block[192 + i] = static_cast<std::byte>(static_cast<int8_t>(17 * static_cast<int>(i) - 128));
  }
  put_half(block.data() + 208, -0.125f);
  std::vector<float> out(kWeights);
  dequantize_row(TensorType::kQ6_K, block.data(), out);
  size_t at = 0;
  const auto byte = [](size_t i) { return (i * 89 + 5) % 256; };
  for (size_t half = 0; half < 2; ++half) {
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      for (size_t i = 0; i < 32; ++i, ++at) {
        const size_t low_byte = byte(64 * half + 32 * (quarter % 2) + i);
        const size_t low = quarter < 2 ? low_byte % 16 : low_byte / 16;
        const size_t high = byte(128 + 32 * half + i) >> (2 * quarter) & 3;
        const float level = static_cast<float>(low + 16 * high) - 32;
        const size_t scale_at = at / 16;
        const float scale = 17 * static_cast<float>(scale_at) - 128;
        ASSERT_EQ(out[at], -0.125f * scale * level) << at;
      }
    }
  }
}

struct Errors {
  float largest = 0;  // of values up to 1
  double rms = 0;
};

Errors round_trip(TensorType type, const std::vector<float>& values) {
  std::vector<std::byte> row(
      static_cast<size_t>(row_bytes(type, static_cast<int64_t>(values.size()))));
  quantize_row(type, values, row.data());
  std::vector<float> back(values.size());
  dequantize_row(type, row.data(), back);
  Errors errors;
  for (size_t i = 0; i < values.size(); ++i) {
    const float error = std::fabs(back[i] - values[i]);
    errors.largest = std::max(errors.largest, error);
    errors.rms += static_cast<double>(error) * static_cast<double>(error);
  }
  errors.rms = std::sqrt(errors.rms / static_cast<double>(values.size()));
  return errors;
}

TEST(KQuants, RoundTripStaysInItsBounds) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> even(-1, 1);
  std::vector<float> values(kWeights * 50);
  for (float& v : values) v = even(random);
  // Half a step of 2/15; the rounding of scale (15 levels of half of 2/15/63) and minimum (1/126).
  const Errors q4 = round_trip(TensorType::kQ4_K, values);
  EXPECT_LT(q4.largest, 1.0f / 15 + 1.0f / 63 + 1.0f / 126 + 0.002f);
  EXPECT_LT(q4.rms, 2.0 / 15 / std::sqrt(12.0) * 1.15);
  // A step of 1/32 at the far end, and 32 levels of half of 1/32/127.
  const Errors q6 = round_trip(TensorType::kQ6_K, values);
  EXPECT_LT(q6.largest, 1.0f / 32 + 1.0f / 254 + 0.001f);
  EXPECT_LT(q6.rms, 1.0 / 32 / std::sqrt(12.0) * 1.15);
}

// Parts of very different size, of one sign, of one value; and so small that the scale vanishes.
TEST(KQuants, OddBlocks) {
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kQ6_K}) {
    SCOPED_TRACE(traits(type).name);
    const float step = type == TensorType::kQ4_K ? 1.0f / 15 : 1.0f / 32;
    std::vector<float> ones(kWeights, 1.0f);
    EXPECT_LT(round_trip(type, ones).largest, step);
    for (float& v : ones) v = -v;
    EXPECT_LT(round_trip(type, ones).largest, step);
    std::vector<float> one_large(kWeights, 0.001f);
    one_large[77] = 1;
    EXPECT_LT(round_trip(type, one_large).largest, step);
    const std::vector<float> tiny(kWeights, 1e-12f);
    EXPECT_LE(round_trip(type, tiny).largest, 1e-12f);
  }
}

}  // namespace
}  // namespace troika::model
