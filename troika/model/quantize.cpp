#include "troika/model/quantize.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "troika/model/k_quants.h"

namespace troika::model {
namespace {

constexpr int kBlock = 32;  // weights in a block of Q4_0, Q4_1, Q8_0

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

void dequantize_q4(const std::byte* q, float d, float m, float* out) {
  for (int i = 0; i < kBlock / 2; ++i) {
    const auto byte = static_cast<uint8_t>(q[i]);
    out[i] = d * static_cast<float>(byte & 15) + m;
    out[i + kBlock / 2] = d * static_cast<float>(byte >> 4) + m;
  }
}

void dequantize_q4_0(const std::byte* block, float* out) {
  const float d = f16_at(block);
  for (int i = 0; i < kBlock / 2; ++i) {
    const auto byte = static_cast<uint8_t>(block[2 + i]);
    out[i] = d * static_cast<float>((byte & 15) - 8);
    out[i + kBlock / 2] = d * static_cast<float>((byte >> 4) - 8);
  }
}

void dequantize_q8_0(const std::byte* block, float* out) {
  const float d = f16_at(block);
  for (int i = 0; i < kBlock; ++i) {
    out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  }
}

int nearest(float value, int low, int high) {
  return static_cast<int>(
      std::lrint(std::clamp(value, static_cast<float>(low), static_cast<float>(high))));
}

void pack_q4(const int* q, std::byte* out) {
  for (int i = 0; i < kBlock / 2; ++i) {
    out[i] = static_cast<std::byte>(q[i] | (q[i + kBlock / 2] << 4));
  }
}

// The level -8 is given to the value of largest magnitude, whatever its sign: d may be negative.
void quantize_q4_0(const float* values, std::byte* block) {
  float extreme = 0;
  for (int i = 0; i < kBlock; ++i) {
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  const uint16_t d_bits = f32_to_f16(extreme / -8.0f);
  const float d = f16_to_f32(d_bits);
  const float inverse = d != 0 ? 1.0f / d : 0.0f;
  int q[kBlock];
  for (int i = 0; i < kBlock; ++i) q[i] = nearest(values[i] * inverse, -8, 7) + 8;
  store(block, d_bits);
  pack_q4(q, block + 2);
}

void quantize_q4_1(const float* values, std::byte* block) {
  const auto [low, high] = std::minmax_element(values, values + kBlock);
  const uint16_t d_bits = f32_to_f16((*high - *low) / 15.0f);
  const uint16_t m_bits = f32_to_f16(*low);
  const float d = f16_to_f32(d_bits);
  const float m = f16_to_f32(m_bits);
  const float inverse = d != 0 ? 1.0f / d : 0.0f;
  int q[kBlock];
  for (int i = 0; i < kBlock; ++i) q[i] = nearest((values[i] - m) * inverse, 0, 15);
  store(block, d_bits);
  store(block + 2, m_bits);
  pack_q4(q, block + 4);
}

void quantize_q8_0(const float* values, std::byte* block) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(values[i]));
  const uint16_t d_bits = f32_to_f16(largest / 127.0f);
  const float d = f16_to_f32(d_bits);
  const float inverse = d != 0 ? 1.0f / d : 0.0f;
  store(block, d_bits);
  for (int i = 0; i < kBlock; ++i) {
    block[2 + i] = static_cast<std::byte>(nearest(values[i] * inverse, -127, 127));
  }
}

// The exponent of all ones marks infinities and NaN. No early exit, so that it vectorizes.
bool all_finite_f32(const std::byte* data, int64_t n) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    bad |= static_cast<uint32_t>((load<uint32_t>(data + 4 * i) & 0x7f800000u) == 0x7f800000u);
  }
  return bad == 0;
}

bool all_finite_16(const std::byte* data, int64_t n, int64_t stride, uint16_t exponent) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    bad |= static_cast<uint32_t>((load<uint16_t>(data + stride * i) & exponent) == exponent);
  }
  return bad == 0;
}

}  // namespace

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {  // zero, subnormal
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 leaves the rounded mantissa in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float f16_at(const std::byte* stored) { return f16_to_f32(load<uint16_t>(stored)); }

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

void dequantize_row(TensorType type, const std::byte* row, std::span<float> out) {
  const auto n = static_cast<int64_t>(out.size());
  const TypeTraits& t = traits(type);
  assert(n % t.block_weights == 0);
  float* to = out.data();
  for (int64_t i = 0; i < n; i += t.block_weights, row += t.block_bytes) {
    switch (type) {
      case TensorType::kF32:
        to[i] = load<float>(row);
        break;
      case TensorType::kF16:
        to[i] = f16_at(row);
        break;
      case TensorType::kBF16:
        to[i] = bf16_to_f32(load<uint16_t>(row));
        break;
      case TensorType::kQ4_0:
        dequantize_q4_0(row, to + i);
        break;
      case TensorType::kQ4_1:
        dequantize_q4(row + 4, f16_at(row), f16_at(row + 2), to + i);
        break;
      case TensorType::kQ8_0:
        dequantize_q8_0(row, to + i);
        break;
      case TensorType::kQ4_K:
        dequantize_q4_k(row, to + i);
        break;
      case TensorType::kQ6_K:
        dequantize_q6_k(row, to + i);
        break;
    }
  }
}

void quantize_row(TensorType type, std::span<const float> values, std::byte* row) {
  const auto n = static_cast<int64_t>(values.size());
  const TypeTraits& t = traits(type);
  assert(n % t.block_weights == 0);
  const float* from = values.data();
  for (int64_t i = 0; i < n; i += t.block_weights, row += t.block_bytes) {
    switch (type) {
      case TensorType::kF32:
        store(row, from[i]);
        break;
      case TensorType::kF16:
        store(row, f32_to_f16(from[i]));
        break;
      case TensorType::kBF16:
        store(row, f32_to_bf16(from[i]));
        break;
      case TensorType::kQ4_0:
        quantize_q4_0(from + i, row);
        break;
      case TensorType::kQ4_1:
        quantize_q4_1(from + i, row);
        break;
      case TensorType::kQ8_0:
        quantize_q8_0(from + i, row);
        break;
      case TensorType::kQ4_K:
        quantize_q4_k(from + i, row);
        break;
      case TensorType::kQ6_K:
        quantize_q6_k(from + i, row);
        break;
    }
  }
}

bool row_is_finite(TensorType type, const std::byte* row, int64_t cols) {
  constexpr uint16_t kF16Exponent = 0x7c00;
  constexpr uint16_t kBf16Exponent = 0x7f80;
  const TypeTraits& t = traits(type);
  const int64_t n = cols / t.block_weights;
  switch (type) {
    case TensorType::kF32:
      return all_finite_f32(row, n);
    case TensorType::kF16:
      return all_finite_16(row, n, 2, kF16Exponent);
    case TensorType::kBF16:
      return all_finite_16(row, n, 2, kBf16Exponent);
    case TensorType::kQ4_0:
    case TensorType::kQ8_0:
      return all_finite_16(row, n, t.block_bytes, kF16Exponent);
    case TensorType::kQ6_K:
      return all_finite_16(row + Q6KBlock::kD, n, t.block_bytes, kF16Exponent);
    case TensorType::kQ4_1:
    case TensorType::kQ4_K:
      return all_finite_16(row, n, t.block_bytes, kF16Exponent) &&
             all_finite_16(row + 2, n, t.block_bytes, kF16Exponent);
  }
  return false;
}

}  // namespace troika::model
