// The vector operations of the shared kernels, in AVX2 + FMA + F16C: 8 lanes. Everything has
// internal linkage, since this code must never be linked into paths that an older CPU runs.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define KERNEL_INLINE inline __attribute__((always_inline))

namespace troika::device::cpu {
namespace {

using VF = __m256;
constexpr int kLanes = 8;
constexpr int kRegisters = 16;
constexpr int kLaneBits = 3;
// GEMM register tile: 6 rows x 2 vectors = 12 accumulators of 16 registers.
constexpr int kTileRows = 6;
constexpr int kTileVecs = 2;
// Outputs that one pass of the dequantizing dot product computes for 1, 2, 3, 4, 6, 8 rows.
constexpr int kDotOutputs[9] = {0, 4, 4, 3, 2, 0, 2, 0, 1};
// Batches up to this many rows take the dot product, larger ones the packed GEMM.
constexpr int kMaxDotRows = 12;
// Queries that attention computes against one KV block at once.
constexpr int kTileQueries = 3;

KERNEL_INLINE VF zero() { return _mm256_setzero_ps(); }
KERNEL_INLINE VF splat(float x) { return _mm256_set1_ps(x); }
KERNEL_INLINE VF load(const float* p) { return _mm256_loadu_ps(p); }
KERNEL_INLINE void store(float* p, VF v) { _mm256_storeu_ps(p, v); }
KERNEL_INLINE VF add(VF a, VF b) { return _mm256_add_ps(a, b); }
KERNEL_INLINE VF sub(VF a, VF b) { return _mm256_sub_ps(a, b); }
KERNEL_INLINE VF mul(VF a, VF b) { return _mm256_mul_ps(a, b); }
KERNEL_INLINE VF div(VF a, VF b) { return _mm256_div_ps(a, b); }
KERNEL_INLINE VF fma(VF a, VF b, VF c) { return _mm256_fmadd_ps(a, b, c); }
// The second operand if either is NaN.
KERNEL_INLINE VF max(VF a, VF b) { return _mm256_max_ps(a, b); }
KERNEL_INLINE VF min(VF a, VF b) { return _mm256_min_ps(a, b); }

KERNEL_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// Lanes below n from a, the others from b; any n.
KERNEL_INLINE VF select_first(VF a, VF b, int n) {
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(first_lanes(n)));
}
// Touches only the first n floats; the other lanes are zero.
KERNEL_INLINE VF load_first(const float* p, int n) { return _mm256_maskload_ps(p, first_lanes(n)); }
KERNEL_INLINE void store_first(float* p, VF v, int n) { _mm256_maskstore_ps(p, first_lanes(n), v); }

// Sum of the lanes in one fixed tree: l with l + 4, then l + 2, then l + 1.
KERNEL_INLINE float sum(VF v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
// The sums of four vectors, each in the tree of sum().
KERNEL_INLINE void sum4(const VF* v, float* sums) {
  __m128 half[4];
  for (int i = 0; i < 4; ++i) {
    half[i] = _mm_add_ps(_mm256_castps256_ps128(v[i]), _mm256_extractf128_ps(v[i], 1));
  }
  const __m128 a = _mm_add_ps(_mm_movelh_ps(half[0], half[1]), _mm_movehl_ps(half[1], half[0]));
  const __m128 b = _mm_add_ps(_mm_movelh_ps(half[2], half[3]), _mm_movehl_ps(half[3], half[2]));
  _mm_storeu_ps(sums, _mm_add_ps(_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xDD)));
}
KERNEL_INLINE float max_lane(VF v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

// Round to nearest even; 2^n of a whole n, -126 <= n <= 127.
KERNEL_INLINE VF round_nearest(VF v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
KERNEL_INLINE VF pow2(VF n) {
  const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
KERNEL_INLINE VF zero_if_less(VF x, VF limit, VF value) {
  return _mm256_andnot_ps(_mm256_cmp_ps(x, limit, _CMP_LT_OQ), value);
}

KERNEL_INLINE VF load_f16(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
KERNEL_INLINE void store_f16(std::byte* p, VF v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
KERNEL_INLINE VF load_bf16(const std::byte* p) {
  const __m256i u = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}

KERNEL_INLINE VF splat_f16(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return _mm256_cvtph_ps(_mm_set1_epi16(static_cast<int16_t>(bits)));
}
// Two neighbouring halves, each in all lanes.
KERNEL_INLINE void splat_f16_pair(const std::byte* p, VF& a, VF& b) {
  int32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const VF both = _mm256_cvtph_ps(_mm_set1_epi32(bits));
  a = _mm256_moveldup_ps(both);
  b = _mm256_movehdup_ps(both);
}

// 32 nibbles as in Q4_0 and Q4_1; vec(i) = d * q + m for weights 8 i .. 8 i + 7.
struct Nibbles {
  VF d, m;
  __m256i q[2];

  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    for (int i = 0; i < 2; ++i) {
      q[i] = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * i)));
    }
  }
  KERNEL_INLINE VF vec(int i) const {
    const __m256i n =
        i < 2 ? _mm256_and_si256(q[i & 1], _mm256_set1_epi32(15)) : _mm256_srli_epi32(q[i & 1], 4);
    return fma(d, _mm256_cvtepi32_ps(n), m);
  }
};

// The low (shift 0) or high (4) nibbles of 32 bytes as in Q4_K: vec(i) = d * q + m for weights
// 8 i .. 8 i + 7.
struct NibblePlane {
  VF d, m;
  __m256i q[4];

  template <int shift>
  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    for (int i = 0; i < 4; ++i) {
      const __m256i both =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8 * i)));
      q[i] = shift == 0 ? _mm256_and_si256(both, _mm256_set1_epi32(15))
                        : _mm256_srli_epi32(both, shift);
    }
  }
  KERNEL_INLINE VF vec(int i) const { return fma(d, _mm256_cvtepi32_ps(q[i]), m); }
};

// The 128 levels of half a block of Q6_K, less 32.
KERNEL_INLINE void join_six_bits(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i bits = _mm256_set1_epi8(0x30);
  const __m256i h = at(high);
  const __m256i upper[4] = {_mm256_slli_epi16(h, 4), _mm256_slli_epi16(h, 2), h,
                            _mm256_srli_epi16(h, 2)};
  for (int i = 0; i < 4; ++i) {
    const __m256i both = at(low + 32 * (i & 1));
    const __m256i l = _mm256_and_si256(i < 2 ? both : _mm256_srli_epi16(both, 4), nibble);
    const __m256i q = _mm256_or_si256(l, _mm256_and_si256(upper[i], bits));
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + 32 * i),
                       _mm256_sub_epi8(q, _mm256_set1_epi8(32)));
  }
}

KERNEL_INLINE VF load_i8(const std::byte* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

KERNEL_INLINE void transpose(VF (&r)[kLanes]) {
  VF a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

}  // namespace
}  // namespace troika::device::cpu
