// What the kernels' tests compare with: random stored weights, and plain double arithmetic.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika/model/tensor_type.h"

namespace troika::device::cpu::testing {

using model::TensorType;

inline constexpr TensorType kAllTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16,
                                           TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
                                           TensorType::kQ4_K, TensorType::kQ6_K};

inline std::string name_of(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return "F32";
    case TensorType::kF16:
      return "F16";
    case TensorType::kBF16:
      return "BF16";
    case TensorType::kQ8_0:
      return "Q8_0";
    case TensorType::kQ4_0:
      return "Q4_0";
    case TensorType::kQ4_1:
      return "Q4_1";
    case TensorType::kQ4_K:
      return "Q4_K";
    case TensorType::kQ6_K:
      return "Q6_K";
  }
  return "?";
}

inline bool is_plain(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

inline int64_t block_weights(TensorType type) {
  if (type == TensorType::kQ4_K || type == TensorType::kQ6_K) return 256;
  return is_plain(type) ? 1 : 32;
}

inline int64_t stored_bytes(TensorType type, int64_t n) {
  switch (type) {
    case TensorType::kF32:
      return 4 * n;
    case TensorType::kF16:
    case TensorType::kBF16:
      return 2 * n;
    case TensorType::kQ8_0:
      return n / 32 * 34;
    case TensorType::kQ4_0:
      return n / 32 * 18;
    case TensorType::kQ4_1:
      return n / 32 * 20;
    case TensorType::kQ4_K:
      return n / 256 * 144;
    case TensorType::kQ6_K:
      return n / 256 * 210;
  }
  return 0;
}

// By the definition of the format, with nothing of the kernels' bit tricks.
inline double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

inline uint16_t half_at(const std::byte* p) {
  return static_cast<uint16_t>(std::to_integer<unsigned>(p[0]) | std::to_integer<unsigned>(p[1])
                                                                     << 8);
}

// Scale or minimum (`which` is 0 or 1) of part 0 to 7 of a block of Q4_K.
inline int q4_k_six_bits(const std::byte* packed, int which, int64_t part) {
  const auto byte = [packed](int64_t i) { return std::to_integer<int>(packed[i]); };
  if (part < 4) return byte(4 * which + part) & 63;
  return (byte(4 + part) >> (4 * which) & 15) + 16 * (byte(4 * which + part - 4) >> 6);
}

// Weights 0 to 255 of one block.
inline float q4_k_weight(const std::byte* block, int64_t i) {
  const int byte = std::to_integer<int>(block[16 + i / 64 * 32 + i % 32]);
  const int q = i % 64 < 32 ? byte & 15 : byte >> 4;
  return static_cast<float>(half_value(half_at(block)) * q4_k_six_bits(block + 4, 0, i / 32) * q -
                            half_value(half_at(block + 2)) * q4_k_six_bits(block + 4, 1, i / 32));
}

inline float q6_k_weight(const std::byte* block, int64_t i) {
  const int64_t in_half = i % 128;
  const int low = std::to_integer<int>(block[i / 128 * 64 + i % 64]) >> (in_half < 64 ? 0 : 4) & 15;
  const int high = std::to_integer<int>(block[128 + i / 128 * 32 + i % 32]) >> in_half / 32 * 2 & 3;
  const auto scale = static_cast<int8_t>(std::to_integer<int>(block[192 + i / 16]));
  return static_cast<float>(half_value(half_at(block + 208)) * scale * (low + 16 * high - 32));
}

// Weight i of a stored row, rounded to float as the formats' definition says.
inline float weight_at(TensorType type, const std::byte* row, int64_t i) {
  const auto nibble = [i](const std::byte* q) {
    const auto byte = std::to_integer<int>(q[i % 16]);
    return i % 32 < 16 ? byte & 15 : byte >> 4;
  };
  const int64_t unit = block_weights(type);
  const std::byte* const block = row + stored_bytes(type, i / unit * unit);
  switch (type) {
    case TensorType::kF32: {
      float f;
      std::memcpy(&f, row + 4 * i, sizeof f);
      return f;
    }
    case TensorType::kF16:
      return static_cast<float>(half_value(half_at(row + 2 * i)));
    case TensorType::kBF16: {
      const uint32_t bits = static_cast<uint32_t>(half_at(row + 2 * i)) << 16;
      float f;
      std::memcpy(&f, &bits, sizeof f);
      return f;
    }
    case TensorType::kQ8_0:
      return static_cast<float>(half_value(half_at(block)) *
                                static_cast<int8_t>(std::to_integer<int>(block[2 + i % 32])));
    case TensorType::kQ4_0:
      return static_cast<float>(half_value(half_at(block)) * (nibble(block + 2) - 8));
    case TensorType::kQ4_1:
      return static_cast<float>(half_value(half_at(block)) * nibble(block + 4) +
                                half_value(half_at(block + 2)));
    case TensorType::kQ4_K:
      return q4_k_weight(block, i % unit);
    case TensorType::kQ6_K:
      return q6_k_weight(block, i % unit);
  }
  return 0;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float normal() { return normal_(engine_); }
  uint32_t bits() { return static_cast<uint32_t>(engine_()); }

  std::vector<float> floats(int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& f : v) f = normal();
    return v;
  }

  // A row of stored weights: any quants, finite scales of both signs, sometimes subnormal.
  void fill_row(TensorType type, std::byte* row, int64_t n) {
    if (type == TensorType::kF32) {
      for (int64_t i = 0; i < n; ++i) {
        const float f = normal();
        std::memcpy(row + 4 * i, &f, sizeof f);
      }
      return;
    }
    for (int64_t i = 0; i < stored_bytes(type, n); ++i) row[i] = static_cast<std::byte>(bits());
    const int64_t step = is_plain(type) ? 2 : stored_bytes(type, block_weights(type));
    const int64_t scales = type == TensorType::kQ4_1 || type == TensorType::kQ4_K ? 2 : 1;
    const int64_t first = type == TensorType::kQ6_K ? step - 2 : 0;
    for (int64_t at = first; at < stored_bytes(type, n); at += step) {
      for (int64_t s = 0; s < scales; ++s) write_scale(type, row + at + 2 * s);
    }
  }

 private:
  // Magnitude about 2^-6 .. 2^0, one in 64 a subnormal half.
  void write_scale(TensorType type, std::byte* p) {
    const uint32_t r = bits();
    const uint32_t sign = r & 0x8000;
    uint32_t h = sign | (9 + (r >> 16) % 6) << 10 | (r & 1023);
    if (type == TensorType::kBF16) {
      h = sign | (121 + (r >> 16) % 6) << 7 | (r & 127);
    } else if ((r >> 24) % 64 == 0) {
      h = sign | (r & 1023);
    }
    p[0] = static_cast<std::byte>(h);
    p[1] = static_cast<std::byte>(h >> 8);
  }

  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

// Scratch as the contract asks for: 64-byte aligned.
class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : memory_(static_cast<float*>(
            std::aligned_alloc(64, static_cast<size_t>((floats * 4 + 127) / 64 * 64)))) {}
  float* get() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> memory_;
};

// Sum of squared errors over sum of squares.
template <class Reference>
double nmse(const std::vector<float>& got, const std::vector<Reference>& expected) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double e = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += e * e;
    power += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return power > 0 ? error / power : error;
}

inline bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

}  // namespace troika::device::cpu::testing
