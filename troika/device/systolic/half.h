// FP16 as the array takes it: rounding to the nearest half, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace troika::device::systolic {

// The nearest half of a float, as a float: 65520 and more become infinite, NaN stays NaN. Without a
// branch, so that compilers compute several at once.
inline float round_to_half(float value) {
  constexpr uint32_t kSignBit = 0x80000000u;
  constexpr uint32_t kInfinity = 0x7f800000u;
  constexpr uint32_t kFirstTooLarge = 0x47800000u;   // 65536
  constexpr uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSignBit;
  // A half has 13 bits of mantissa less; a carry moves into the exponent, as it should.
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & ~0x1fffu;
  // Floats in [0.5, 1) lie 2^-24 apart, as subnormal halves do: adding 0.5 rounds to them.
  const float subnormal = (std::bit_cast<float>(magnitude) + 0.5f) - 0.5f;
  uint32_t rounded = magnitude < kSmallestNormal ? std::bit_cast<uint32_t>(subnormal) : normal;
  rounded = normal >= kFirstTooLarge ? kInfinity : rounded;
  rounded = magnitude > kInfinity ? magnitude : rounded;
  return std::bit_cast<float>(rounded | (bits & kSignBit));
}

}  // namespace troika::device::systolic
