#include "troika/model/k_quants.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "troika/model/quantize.h"

namespace troika::model {
namespace {

constexpr float kLargestSixBits = 63;
constexpr float kLargestNibble = 15;
constexpr float kLargestInt8 = 127;
constexpr float kCentre6 = 32;

// Returns the value as stored.
float store_half(std::byte* to, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(to, &bits, sizeof(bits));
  return f16_to_f32(bits);
}

float inverse(float value) { return value != 0 ? 1.0f / value : 0.0f; }

int nearest(float value, float low, float high) {
  return static_cast<int>(std::lrint(std::clamp(value, low, high)));
}

// Where weight i of a Q6_K block has its bits.
struct Q6Place {
  int low;
  int low_shift;
  int high;
  int high_shift;

  explicit Q6Place(int i)
      : low(i / 128 * 64 + i % 64),
        low_shift(i % 128 / 64 * 4),
        high(Q6KBlock::kHigh + i / 128 * 32 + i % 32),
        high_shift(i % 128 / 32 * 2) {}
};

}  // namespace

// Bytes 0-3 and 4-7 hold in their low six bits the scales and the minima of parts 0 to 3. Those of
// parts 4 to 7 have their low four bits together in bytes 8-11, and the upper two in the upper two
// of bytes 0-3 and 4-7.
void pack_scales(const SixBits& scales, const SixBits& minima, std::byte* packed) {
  for (size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::byte>(scales[i] | scales[i + 4] >> 4 << 6);
    packed[i + 4] = static_cast<std::byte>(minima[i] | minima[i + 4] >> 4 << 6);
    packed[i + 8] = static_cast<std::byte>((scales[i + 4] & 15) | (minima[i + 4] & 15) << 4);
  }
}

void unpack_scales(const std::byte* packed, SixBits& scales, SixBits& minima) {
  for (size_t i = 0; i < 4; ++i) {
    const auto a = std::to_integer<uint8_t>(packed[i]);
    const auto b = std::to_integer<uint8_t>(packed[i + 4]);
    const auto low = std::to_integer<uint8_t>(packed[i + 8]);
    scales[i] = a & 63;
    minima[i] = b & 63;
    scales[i + 4] = static_cast<uint8_t>((low & 15) | a >> 6 << 4);
    minima[i + 4] = static_cast<uint8_t>(low >> 4 | b >> 6 << 4);
  }
}

void dequantize_q4_k(const std::byte* block, float* values) {
  const float d = f16_at(block);
  const float dmin = f16_at(block + 2);
  SixBits scales{};
  SixBits minima{};
  unpack_scales(block + Q4KBlock::kScales, scales, minima);
  for (size_t part = 0; part < Q4KBlock::kParts; ++part) {
    const float scale = d * static_cast<float>(scales[part]);
    const float minimum = dmin * static_cast<float>(minima[part]);
    const std::byte* levels = block + Q4KBlock::kLevels + part / 2 * 32;
    for (size_t i = 0; i < 32; ++i) {
      const int level = std::to_integer<int>(levels[i]) >> (part % 2 * 4) & 15;
      values[part * 32 + i] = scale * static_cast<float>(level) - minimum;
    }
  }
}

// Each part goes from its least value, at most 0, to its largest.
void quantize_q4_k(const float* values, std::byte* block) {
  float lows[Q4KBlock::kParts];
  float steps[Q4KBlock::kParts];
  for (int part = 0; part < Q4KBlock::kParts; ++part) {
    const auto [low, high] = std::minmax_element(values + part * 32, values + part * 32 + 32);
    lows[part] = -std::min(*low, 0.0f);
    steps[part] = (std::max(*high, 0.0f) + lows[part]) / kLargestNibble;
  }
  const float d = store_half(block, *std::max_element(steps, std::end(steps)) / kLargestSixBits);
  const float dmin =
      store_half(block + 2, *std::max_element(lows, std::end(lows)) / kLargestSixBits);
  std::memset(block + Q4KBlock::kLevels, 0, Q4KBlock::kBytes - Q4KBlock::kLevels);
  SixBits scales{};
  SixBits minima{};
  for (size_t part = 0; part < Q4KBlock::kParts; ++part) {
    const int scale = nearest(steps[part] * inverse(d), 0, kLargestSixBits);
    const int minimum = nearest(lows[part] * inverse(dmin), 0, kLargestSixBits);
    scales[part] = static_cast<uint8_t>(scale);
    minima[part] = static_cast<uint8_t>(minimum);
    const float per_step = inverse(d * static_cast<float>(scale));
    const float offset = dmin * static_cast<float>(minimum);
    std::byte* levels = block + Q4KBlock::kLevels + part / 2 * 32;
    for (size_t i = 0; i < 32; ++i) {
      const int level = nearest((values[part * 32 + i] + offset) * per_step, 0, kLargestNibble);
      levels[i] |= static_cast<std::byte>(level << (part % 2 * 4));
    }
  }
  pack_scales(scales, minima, block + Q4KBlock::kScales);
}

void dequantize_q6_k(const std::byte* block, float* values) {
  const float d = f16_at(block + Q6KBlock::kD);
  for (int i = 0; i < kSuperBlock; ++i) {
    const Q6Place at(i);
    const int low = std::to_integer<int>(block[at.low]) >> at.low_shift & 15;
    const int high = std::to_integer<int>(block[at.high]) >> at.high_shift & 3;
    const auto scale = static_cast<int8_t>(std::to_integer<int>(block[Q6KBlock::kScales + i / 16]));
    values[i] = d * static_cast<float>(scale) * static_cast<float>((low | high << 4) - 32);
  }
}

// As in Q4_0 the value of largest magnitude in a part gets the level that has no opposite.
void quantize_q6_k(const float* values, std::byte* block) {
  float steps[Q6KBlock::kParts];
  float largest = 0;
  for (int part = 0; part < Q6KBlock::kParts; ++part) {
    float extreme = 0;
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
    }
    steps[part] = extreme / -kCentre6;
    largest = std::max(largest, std::fabs(steps[part]));
  }
  const float d = store_half(block + Q6KBlock::kD, largest / kLargestInt8);
  std::memset(block, 0, Q6KBlock::kScales);
  for (int part = 0; part < Q6KBlock::kParts; ++part) {
    const int scale = nearest(steps[part] * inverse(d), -kLargestInt8, kLargestInt8);
    block[Q6KBlock::kScales + part] = static_cast<std::byte>(scale);
    const float per_step = inverse(d * static_cast<float>(scale));
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const int level = nearest(values[i] * per_step, -kCentre6, kCentre6 - 1) + 32;
      const Q6Place at(i);
      block[at.low] |= static_cast<std::byte>((level & 15) << at.low_shift);
      block[at.high] |= static_cast<std::byte>(level >> 4 << at.high_shift);
    }
  }
}

}  // namespace troika::model
