// The vector operations of the shared kernels for any processor: 4 lanes in the compiler's own
// vector type, a * b + c rounded twice, library expf.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define KERNEL_INLINE inline __attribute__((always_inline))

namespace troika::device::cpu {
namespace {

using VF = float __attribute__((vector_size(16)));
using VI = int32_t __attribute__((vector_size(16)));
constexpr int kLanes = 4;
constexpr int kRegisters = 16;
constexpr int kLaneBits = 2;
// GEMM register tile: 4 rows x 2 vectors, for machines with 16 registers.
constexpr int kTileRows = 4;
constexpr int kTileVecs = 2;
// Outputs that one pass of the dequantizing dot product computes for 1, 2, 3, 4, 6, 8 rows.
constexpr int kDotOutputs[9] = {0, 4, 4, 2, 2, 0, 1, 0, 1};
// Batches up to this many rows take the dot product, larger ones the packed GEMM.
constexpr int kMaxDotRows = 8;
// Queries that attention computes against one KV block at once.
constexpr int kTileQueries = 1;

KERNEL_INLINE VF zero() { return VF{0, 0, 0, 0}; }
KERNEL_INLINE VF splat(float x) { return VF{x, x, x, x}; }
KERNEL_INLINE VF load(const float* p) {
  VF v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
KERNEL_INLINE void store(float* p, VF v) { std::memcpy(p, &v, sizeof v); }
KERNEL_INLINE VF add(VF a, VF b) { return a + b; }
KERNEL_INLINE VF sub(VF a, VF b) { return a - b; }
KERNEL_INLINE VF mul(VF a, VF b) { return a * b; }
KERNEL_INLINE VF div(VF a, VF b) { return a / b; }
KERNEL_INLINE VF fma(VF a, VF b, VF c) { return a * b + c; }

KERNEL_INLINE VF select(VI take_a, VF a, VF b) {
  return std::bit_cast<VF>((std::bit_cast<VI>(a) & take_a) | (std::bit_cast<VI>(b) & ~take_a));
}
// The second operand if either is NaN.
KERNEL_INLINE VF max(VF a, VF b) { return select(a > b, a, b); }
// Lanes below n from a, the others from b; any n.
KERNEL_INLINE VF select_first(VF a, VF b, int n) {
  return select(VI{0, 1, 2, 3} < VI{n, n, n, n}, a, b);
}
// Touches only the first n floats; the other lanes are zero.
KERNEL_INLINE VF load_first(const float* p, int n) {
  VF v = zero();
  for (int i = 0; i < kLanes && i < n; ++i) v[i] = p[i];
  return v;
}
KERNEL_INLINE void store_first(float* p, VF v, int n) {
  for (int i = 0; i < kLanes && i < n; ++i) p[i] = v[i];
}

// Sum of the lanes in one fixed tree: l with l + 2, then l + 1.
KERNEL_INLINE float sum(VF v) { return (v[0] + v[2]) + (v[1] + v[3]); }
KERNEL_INLINE void sum4(const VF* v, float* sums) {
  for (int i = 0; i < 4; ++i) sums[i] = sum(v[i]);
}
KERNEL_INLINE float max_lane(VF v) {
  const float a = v[0] > v[2] ? v[0] : v[2];
  const float b = v[1] > v[3] ? v[1] : v[3];
  return a > b ? a : b;
}
KERNEL_INLINE VF exp(VF v) {
  return VF{std::exp(v[0]), std::exp(v[1]), std::exp(v[2]), std::exp(v[3])};
}

// Exact for every value, subnormals, infinities and NaN too.
KERNEL_INLINE float half_to_float(uint32_t h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t magnitude = (h & 0x7fffu) << 13;
  // Scaling by 2^112 moves the exponent's bias; a subnormal half is a subnormal float before it.
  float f = std::bit_cast<float>(magnitude) * 0x1p112f;
  if ((h & 0x7c00u) == 0x7c00u) f = std::bit_cast<float>(magnitude | 0x7f800000u);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | sign);
}
// Round to nearest even; too large gives infinity.
KERNEL_INLINE uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t a = bits & 0x7fffffffu;
  uint32_t h;
  if (a > 0x7f800000u) {
    h = 0x7e00u | ((a >> 13) & 0x1ffu);
  } else if (a >= 0x477ff000u) {  // 65520 and more
    h = 0x7c00u;
  } else if (a < 0x38800000u) {  // subnormal half: adding 0.5 rounds at 2^-24
    h = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;
  } else {
    h = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | h);
}

KERNEL_INLINE float half_at(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return half_to_float(bits);
}
KERNEL_INLINE VF load_f16(const std::byte* p) {
  return VF{half_at(p), half_at(p + 2), half_at(p + 4), half_at(p + 6)};
}
KERNEL_INLINE void store_f16(std::byte* p, VF v) {
  for (int i = 0; i < kLanes; ++i) {
    const uint16_t h = float_to_half(v[i]);
    std::memcpy(p + 2 * i, &h, sizeof h);
  }
}
KERNEL_INLINE VF load_bf16(const std::byte* p) {
  uint16_t u[4];
  std::memcpy(u, p, sizeof u);
  return std::bit_cast<VF>(VI{u[0], u[1], u[2], u[3]} << 16);
}
KERNEL_INLINE VF splat_f16(const std::byte* p) { return splat(half_at(p)); }
// Two neighbouring halves, each in all lanes.
KERNEL_INLINE void splat_f16_pair(const std::byte* p, VF& a, VF& b) {
  a = splat(half_at(p));
  b = splat(half_at(p + 2));
}

KERNEL_INLINE VF to_floats(const int32_t (&v)[4]) {
  return __builtin_convertvector((VI{v[0], v[1], v[2], v[3]}), VF);
}
// 32 nibbles as in Q4_0 and Q4_1; vec(i) = d * q + m for weights 4 i .. 4 i + 3.
struct Nibbles {
  VF d, m;
  const std::byte* q;

  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    q = p;
  }
  KERNEL_INLINE VF vec(int i) const {
    uint8_t b[4];
    std::memcpy(b, q + 4 * (i & 3), sizeof b);
    const int shift = i < 4 ? 0 : 4;
    int32_t v[4];
    for (int l = 0; l < 4; ++l) v[l] = (b[l] >> shift) & 15;
    return fma(d, to_floats(v), m);
  }
};

// The low (shift 0) or high (4) nibbles of 32 bytes as in Q4_K: vec(i) = d * q + m for weights
// 4 i .. 4 i + 3.
struct NibblePlane {
  VF d, m;
  const std::byte* q;
  int right;

  template <int shift>
  KERNEL_INLINE void read(const std::byte* p, VF scale, VF offset) {
    d = scale;
    m = offset;
    q = p;
    right = shift;
  }
  KERNEL_INLINE VF vec(int i) const {
    uint8_t b[4];
    std::memcpy(b, q + 4 * i, sizeof b);
    int32_t v[4];
    for (int l = 0; l < 4; ++l) v[l] = (b[l] >> right) & 15;
    return fma(d, to_floats(v), m);
  }
};

// The 128 levels of half a block of Q6_K, less 32.
KERNEL_INLINE void join_six_bits(const std::byte* low, const std::byte* high, std::byte* out) {
  for (int i = 0; i < 32; ++i) {
    const auto h = std::to_integer<unsigned>(high[i]);
    const auto a = std::to_integer<unsigned>(low[i]);
    const auto b = std::to_integer<unsigned>(low[32 + i]);
    out[i] = static_cast<std::byte>(((a & 15) | (h << 4 & 48)) - 32);
    out[32 + i] = static_cast<std::byte>(((b & 15) | (h << 2 & 48)) - 32);
    out[64 + i] = static_cast<std::byte>((a >> 4 | (h & 48)) - 32);
    out[96 + i] = static_cast<std::byte>((b >> 4 | (h >> 2 & 48)) - 32);
  }
}

KERNEL_INLINE VF load_i8(const std::byte* p) {
  int8_t b[4];
  std::memcpy(b, p, sizeof b);
  return to_floats({b[0], b[1], b[2], b[3]});
}

KERNEL_INLINE void transpose(VF (&r)[kLanes]) {
  const VF a = r[0], b = r[1], c = r[2], d = r[3];
  for (int i = 0; i < 4; ++i) r[i] = VF{a[i], b[i], c[i], d[i]};
}

}  // namespace
}  // namespace troika::device::cpu
