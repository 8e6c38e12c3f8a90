// The vector operations of the shared kernels, in AVX-512 F, BW, VL, DQ: 16 lanes. Everything has
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

using VF = __m512;
constexpr int kLanes = 16;
constexpr int kRegisters = 32;
constexpr int kLaneBits = 4;
// GEMM register tile: 14 rows x 2 vectors = 28 accumulators of 32 registers.
constexpr int kTileRows = 14;
constexpr int kTileVecs = 2;
// Outputs that one pass of the dequantizing dot product computes for 1, 2, 3, 4, 6, 8 rows.
constexpr int kDotOutputs[9] = {0, 8, 4, 4, 4, 0, 3, 0, 2};
// Batches up to this many rows take the dot product, larger ones the packed GEMM.
constexpr int kMaxDotRows = 16;
// Queries that attention computes against one KV block at once.
constexpr int kTileQueries = 8;

KERNEL_INLINE VF zero() { return _mm512_setzero_ps(); }
KERNEL_INLINE VF splat(float x) { return _mm512_set1_ps(x); }
KERNEL_INLINE VF load(const float* p) { return _mm512_loadu_ps(p); }
KERNEL_INLINE void store(float* p, VF v) { _mm512_storeu_ps(p, v); }
KERNEL_INLINE VF add(VF a, VF b) { return _mm512_add_ps(a, b); }
KERNEL_INLINE VF sub(VF a, VF b) { return _mm512_sub_ps(a, b); }
KERNEL_INLINE VF mul(VF a, VF b) { return _mm512_mul_ps(a, b); }
KERNEL_INLINE VF div(VF a, VF b) { return _mm512_div_ps(a, b); }
KERNEL_INLINE VF fma(VF a, VF b, VF c) { return _mm512_fmadd_ps(a, b, c); }
// The second operand if either is NaN.
KERNEL_INLINE VF max(VF a, VF b) { return _mm512_max_ps(a, b); }
KERNEL_INLINE VF min(VF a, VF b) { return _mm512_min_ps(a, b); }

KERNEL_INLINE __mmask16 first_lanes(int n) {
  return static_cast<__mmask16>(n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1u);
}
// Lanes below n from a, the others from b; any n.
KERNEL_INLINE VF select_first(VF a, VF b, int n) {
  return _mm512_mask_blend_ps(first_lanes(n), b, a);
}
// Touches only the first n floats; the other lanes are zero.
KERNEL_INLINE VF load_first(const float* p, int n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
KERNEL_INLINE void store_first(float* p, VF v, int n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

// Sum of the lanes in one fixed tree: l with l + 8, then l + 4, l + 2, l + 1.
KERNEL_INLINE float sum(VF v) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
KERNEL_INLINE void sum4(const VF* v, float* sums) {
  for (int i = 0; i < 4; ++i) sums[i] = sum(v[i]);
}
KERNEL_INLINE float max_lane(VF v) {
  const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

KERNEL_INLINE VF round_nearest(VF v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// 2^n of a whole n, -126 <= n <= 127.
KERNEL_INLINE VF pow2(VF n) {
  const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
}
KERNEL_INLINE VF zero_if_less(VF x, VF limit, VF value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), value);
}

KERNEL_INLINE VF load_f16(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
KERNEL_INLINE void store_f16(std::byte* p, VF v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
KERNEL_INLINE VF load_bf16(const std::byte* p) {
  const __m512i u = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(u, 16));
}

KERNEL_INLINE VF splat_f16(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(bits)));
}
// Two neighbouring halves, each in all lanes.
KERNEL_INLINE void splat_f16_pair(const std::byte* p, VF& a, VF& b) {
  int32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const VF both = _mm512_cvtph_ps(_mm256_set1_epi32(bits));
  a = _mm512_moveldup_ps(both);
  b = _mm512_movehdup_ps(both);
}

// 32 nibbles as in Q4_0 and Q4_1; vec(i) = d * q + m for weights 16 i .. 16 i + 15. All 16 possible
// weights of the block are computed once and picked by a permutation, which ignores the upper bits
// of its index.
struct Nibbles {
  VF table;
  __m512i q;

  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    const VF values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    table = fma(scale, values, offset);
    q = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  KERNEL_INLINE VF vec(int i) const {
    return _mm512_permutexvar_ps(i == 0 ? q : _mm512_srli_epi32(q, 4), table);
  }
};

// The low (shift 0) or high (4) nibbles of 32 bytes as in Q4_K: vec(i) = d * q + m for weights
// 16 i .. 16 i + 15.
struct NibblePlane {
  VF table;
  __m512i q[2];

  template <int shift>
  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    const VF values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    table = fma(scale, values, offset);
    for (int i = 0; i < 2; ++i) {
      q[i] = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i)));
      if (shift > 0) q[i] = _mm512_srli_epi32(q[i], shift);
    }
  }
  KERNEL_INLINE VF vec(int i) const { return _mm512_permutexvar_ps(q[i], table); }
};

// The 128 levels of half a block of Q6_K, less 32.
KERNEL_INLINE void join_six_bits(const std::byte* low, const std::byte* high, std::byte* out) {
  const __m512i nibble = _mm512_set1_epi8(15);
  const __m512i bits = _mm512_set1_epi8(0x30);
  const __m512i both = _mm512_loadu_si512(low);
  // Each pair of bits twice: the halves of a vector shift it by different counts.
  const __m512i h =
      _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)));
  const __m512i left =
      _mm512_mask_mov_epi64(_mm512_slli_epi16(h, 4), 0xf0, _mm512_slli_epi16(h, 2));
  const __m512i right = _mm512_mask_mov_epi64(h, 0xf0, _mm512_srli_epi16(h, 2));
  const auto put = [&](int at, __m512i l, __m512i upper) {
    const __m512i q = _mm512_or_si512(_mm512_and_si512(l, nibble), _mm512_and_si512(upper, bits));
    _mm512_store_si512(out + at, _mm512_sub_epi8(q, _mm512_set1_epi8(32)));
  };
  put(0, both, left);
  put(64, _mm512_srli_epi16(both, 4), right);
}

KERNEL_INLINE VF load_i8(const std::byte* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

KERNEL_INLINE VF unpack_pairs_low(VF a, VF b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
KERNEL_INLINE VF unpack_pairs_high(VF a, VF b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

KERNEL_INLINE void transpose(VF (&r)[kLanes]) {
  VF a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  // b[i + c], quarter l: rows i .. i + 3 of column 4 l + c.
  for (int i = 0; i < 16; i += 4) {
    b[i] = unpack_pairs_low(a[i], a[i + 2]);
    b[i + 1] = unpack_pairs_high(a[i], a[i + 2]);
    b[i + 2] = unpack_pairs_low(a[i + 1], a[i + 3]);
    b[i + 3] = unpack_pairs_high(a[i + 1], a[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const VF low01 = _mm512_shuffle_f32x4(b[c], b[c + 4], 0x44);
    const VF low23 = _mm512_shuffle_f32x4(b[c], b[c + 4], 0xEE);
    const VF high01 = _mm512_shuffle_f32x4(b[c + 8], b[c + 12], 0x44);
    const VF high23 = _mm512_shuffle_f32x4(b[c + 8], b[c + 12], 0xEE);
    r[c] = _mm512_shuffle_f32x4(low01, high01, 0x88);
    r[c + 4] = _mm512_shuffle_f32x4(low01, high01, 0xDD);
    r[c + 8] = _mm512_shuffle_f32x4(low23, high23, 0x88);
    r[c + 12] = _mm512_shuffle_f32x4(low23, high23, 0xDD);
  }
}

}  // namespace
}  // namespace troika::device::cpu
