// The vector operations of the shared kernels, in AArch64 Advanced SIMD: 4 lanes, 32 registers.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define KERNEL_INLINE inline __attribute__((always_inline))

namespace troika::device::cpu {
namespace {

using VF = float32x4_t;
constexpr int kLanes = 4;
constexpr int kRegisters = 32;
constexpr int kLaneBits = 2;
// GEMM register tile: 8 rows x 3 vectors = 24 accumulators of 32 registers.
constexpr int kTileRows = 8;
constexpr int kTileVecs = 3;
// Outputs that one pass of the dequantizing dot product computes for 1, 2, 3, 4, 6, 8 rows.
constexpr int kDotOutputs[9] = {0, 4, 4, 4, 4, 0, 2, 0, 2};
// Batches up to this many rows take the dot product, larger ones the packed GEMM.
constexpr int kMaxDotRows = 12;
// Queries that attention computes against one KV block at once.
constexpr int kTileQueries = 3;

KERNEL_INLINE VF zero() { return vdupq_n_f32(0); }
KERNEL_INLINE VF splat(float x) { return vdupq_n_f32(x); }
KERNEL_INLINE VF load(const float* p) { return vld1q_f32(p); }
KERNEL_INLINE void store(float* p, VF v) { vst1q_f32(p, v); }
KERNEL_INLINE VF add(VF a, VF b) { return vaddq_f32(a, b); }
KERNEL_INLINE VF sub(VF a, VF b) { return vsubq_f32(a, b); }
KERNEL_INLINE VF mul(VF a, VF b) { return vmulq_f32(a, b); }
KERNEL_INLINE VF div(VF a, VF b) { return vdivq_f32(a, b); }
KERNEL_INLINE VF fma(VF a, VF b, VF c) { return vfmaq_f32(c, a, b); }
// NaN if either is NaN.
KERNEL_INLINE VF max(VF a, VF b) { return vmaxq_f32(a, b); }
KERNEL_INLINE VF min(VF a, VF b) { return vminq_f32(a, b); }

KERNEL_INLINE uint32x4_t first_lanes(int n) {
  const int32_t lanes[4] = {0, 1, 2, 3};
  return vcltq_s32(vld1q_s32(lanes), vdupq_n_s32(n));
}
// Lanes below n from a, the others from b; any n.
KERNEL_INLINE VF select_first(VF a, VF b, int n) { return vbslq_f32(first_lanes(n), a, b); }
// Touches only the first n floats; the other lanes are zero.
KERNEL_INLINE VF load_first(const float* p, int n) {
  float lanes[4] = {};
  for (int i = 0; i < kLanes && i < n; ++i) lanes[i] = p[i];
  return vld1q_f32(lanes);
}
KERNEL_INLINE void store_first(float* p, VF v, int n) {
  float lanes[4];
  vst1q_f32(lanes, v);
  for (int i = 0; i < kLanes && i < n; ++i) p[i] = lanes[i];
}

// Sum of the lanes in one fixed tree: l with l + 2, then l + 1.
KERNEL_INLINE float sum(VF v) {
  const float32x2_t s = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
}
KERNEL_INLINE void sum4(const VF* v, float* sums) {
  for (int i = 0; i < 4; ++i) sums[i] = sum(v[i]);
}
KERNEL_INLINE float max_lane(VF v) { return vmaxvq_f32(v); }

// Round to nearest even; 2^n of a whole n, -126 <= n <= 127.
KERNEL_INLINE VF round_nearest(VF v) { return vrndnq_f32(v); }
KERNEL_INLINE VF pow2(VF n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}
KERNEL_INLINE VF zero_if_less(VF x, VF limit, VF value) {
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), vcltq_f32(x, limit)));
}

KERNEL_INLINE VF load_f16(const std::byte* p) {
  uint16_t h[4];
  std::memcpy(h, p, sizeof h);
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h)));
}
KERNEL_INLINE void store_f16(std::byte* p, VF v) {
  uint16_t h[4];
  vst1_u16(h, vreinterpret_u16_f16(vcvt_f16_f32(v)));
  std::memcpy(p, h, sizeof h);
}
KERNEL_INLINE VF load_bf16(const std::byte* p) {
  uint16_t h[4];
  std::memcpy(h, p, sizeof h);
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(h), 16));
}

KERNEL_INLINE VF splat_f16(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)));
}
// Two neighbouring halves, each in all lanes.
KERNEL_INLINE void splat_f16_pair(const std::byte* p, VF& a, VF& b) {
  a = splat_f16(p);
  b = splat_f16(p + 2);
}

// Lanes 4 i .. 4 i + 3 of 16 bytes as floats.
KERNEL_INLINE VF bytes_to_floats(uint8x16_t bytes, int i) {
  const uint16x8_t half = i < 2 ? vmovl_u8(vget_low_u8(bytes)) : vmovl_high_u8(bytes);
  return vcvtq_f32_u32((i & 1) == 0 ? vmovl_u16(vget_low_u16(half)) : vmovl_high_u16(half));
}

// 32 nibbles as in Q4_0 and Q4_1; vec(i) = d * q + m for weights 4 i .. 4 i + 3.
struct Nibbles {
  VF d, m;
  uint8x16_t q[2];

  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(p));
    q[0] = vandq_u8(bytes, vdupq_n_u8(15));
    q[1] = vshrq_n_u8(bytes, 4);
  }
  KERNEL_INLINE VF vec(int i) const { return fma(d, bytes_to_floats(q[i >> 2], i & 3), m); }
};

// The low (shift 0) or high (4) nibbles of 32 bytes as in Q4_K: vec(i) = d * q + m for weights
// 4 i .. 4 i + 3.
struct NibblePlane {
  VF d, m;
  uint8x16_t q[2];

  template <int shift>
  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    for (int i = 0; i < 2; ++i) {
      const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(p + 16 * i));
      q[i] = shift == 0 ? vandq_u8(bytes, vdupq_n_u8(15)) : vshrq_n_u8(bytes, 4);
    }
  }
  KERNEL_INLINE VF vec(int i) const { return fma(d, bytes_to_floats(q[i >> 2], i & 3), m); }
};

// The 128 levels of half a block of Q6_K, less 32.
KERNEL_INLINE void join_six_bits(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* p) { return vld1q_u8(reinterpret_cast<const uint8_t*>(p)); };
  const auto put = [out](int i, uint8x16_t l, uint8x16_t upper) {
    const uint8x16_t q = vorrq_u8(l, vandq_u8(upper, vdupq_n_u8(0x30)));
    vst1q_u8(reinterpret_cast<uint8_t*>(out + i), vsubq_u8(q, vdupq_n_u8(32)));
  };
  const uint8x16_t nibble = vdupq_n_u8(15);
  for (int i = 0; i < 32; i += 16) {
    const uint8x16_t h = at(high + i);
    const uint8x16_t a = at(low + i);
    const uint8x16_t b = at(low + 32 + i);
    put(i, vandq_u8(a, nibble), vshlq_n_u8(h, 4));
    put(32 + i, vandq_u8(b, nibble), vshlq_n_u8(h, 2));
    put(64 + i, vshrq_n_u8(a, 4), h);
    put(96 + i, vshrq_n_u8(b, 4), vshrq_n_u8(h, 2));
  }
}

KERNEL_INLINE VF load_i8(const std::byte* p) {
  int32_t packed;
  std::memcpy(&packed, p, sizeof packed);
  const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(packed)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}

KERNEL_INLINE void transpose(VF (&r)[kLanes]) {
  const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
  const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
  const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
  const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
  r[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
  r[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
  r[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
  r[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

}  // namespace
}  // namespace troika::device::cpu
