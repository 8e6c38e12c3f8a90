// The number formats in super-blocks of 256 weights: conversion of one block, and its packed
// fields.
//
//   Q4_K  144 bytes: f16 d, f16 dmin, 12 B of eight 6-bit scales and eight 6-bit minima, 128 B q
//         w = (d * scale) * q - dmin * minimum, one scale and minimum for each 32 weights; 32 bytes
//         of q hold 64 weights, first all low nibbles, then all high ones
//   Q6_K  210 bytes: 128 B low and 64 B high bits of q, 16 int8 scales, f16 d
//         w = (d * scale) * (q - 32), one scale for each 16 weights; each half of 128 weights has
//         64 B low nibbles (weights i and i + 64 in byte i) and 32 B high pairs of bits (weights
//         i, i + 32, i + 64, i + 96 in byte i)
//
// d * scale and dmin * minimum are exact in float, so that w is rounded once (Q4_K) or never
// (Q6_K).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troika::model {

inline constexpr int kSuperBlock = 256;

struct Q4KBlock {
  static constexpr int kBytes = 144;
  static constexpr int kParts = 8;  // of 32 weights
  static constexpr int kScales = 4;
  static constexpr int kLevels = 16;
};

struct Q6KBlock {
  static constexpr int kBytes = 210;
  static constexpr int kParts = 16;  // of 16 weights
  static constexpr int kHigh = 128;
  static constexpr int kScales = 192;
  static constexpr int kD = 208;
};

using SixBits = std::array<uint8_t, Q4KBlock::kParts>;  // 0 to 63 each

// The 12 bytes of a Q4_K block's scales and minima.
void pack_scales(const SixBits& scales, const SixBits& minima, std::byte* packed);
void unpack_scales(const std::byte* packed, SixBits& scales, SixBits& minima);

// One block; `values` are 256.
void dequantize_q4_k(const std::byte* block, float* values);
void quantize_q4_k(const float* values, std::byte* block);
void dequantize_q6_k(const std::byte* block, float* values);
void quantize_q6_k(const float* values, std::byte* block);

}  // namespace troika::model
