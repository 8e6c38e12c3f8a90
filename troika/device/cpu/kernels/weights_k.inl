// Stored weights of the K-quants to vectors of floats. Layouts: troika/model/k_quants.h.

namespace troika::device::cpu {
namespace {

using model::Q4KBlock;
using model::Q6KBlock;

// Halves of super-blocks: first 16 bytes for each block, its scales as whole numbers; behind those
// of all blocks their d, and dmin.
constexpr int kWholeScales = 16;
constexpr int kHalvesAt = kWholeScales * kSuperBlocks;

// 16 whole numbers for each block, times its d: as many floats of Scales.
static_assert(kHalvesAt + 4 * kSuperBlocks <= static_cast<int>(sizeof(Halves)));
static_assert(kWholeScales * kSuperBlocks * sizeof(float) <= sizeof(Scales));

template <>
struct Weights<TensorType::kQ4_K> {
  static constexpr bool kPlain = false;
  static constexpr int kUnit = 64;
  static constexpr int kBlock = model::kSuperBlock;
  static constexpr int64_t kBytes = Q4KBlock::kBytes;
  struct Unit {
    const std::byte* q;
    const float* d;
  };
  NibblePlane nibbles;
  // Scales of the 8 parts, then their minima; four of each at once.
  static KERNEL_INLINE void take_half(const std::byte* row, int64_t i, Halves& halves) {
    const std::byte* const block = row + i * kBytes;
    uint32_t u[3];
    std::memcpy(u, block + Q4KBlock::kScales, sizeof u);
    const uint32_t parts[4] = {u[0] & 0x3f3f3f3fu, (u[2] & 0x0f0f0f0fu) | (u[0] >> 2 & 0x30303030u),
                               u[1] & 0x3f3f3f3fu,
                               (u[2] >> 4 & 0x0f0f0f0fu) | (u[1] >> 2 & 0x30303030u)};
    std::memcpy(halves.at + kWholeScales * i, parts, sizeof parts);
    std::memcpy(halves.at + kHalvesAt + 4 * i, block, 4);
  }
  static KERNEL_INLINE void take_scales(const Halves& halves, int64_t count, Scales& scales) {
    for (int64_t b = 0; b < count; ++b) {
      VF d, dmin;
      splat_f16_pair(halves.at + kHalvesAt + 4 * b, d, dmin);
      const VF minus = sub(zero(), dmin);
      for (int i = 0; i < kWholeScales; i += kLanes) {
        const VF factor = i + kLanes <= 8 ? d : i >= 8 ? minus : select_first(d, minus, 8);
        const int64_t at = kWholeScales * b + i;
        store(scales.at + at, mul(factor, load_i8(halves.at + at)));
      }
    }
  }
  static KERNEL_INLINE void open(const std::byte* block, int i, const Scales& scales, int64_t b,
                                 Unit& unit) {
    unit = {block + Q4KBlock::kLevels + 32 * i, scales.at + kWholeScales * b + 2 * i};
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    nibbles.read<4 * part>(unit.q, splat(unit.d[part]), splat(unit.d[Q4KBlock::kParts + part]));
  }
  KERNEL_INLINE VF vec(int i) const { return nibbles.vec(i); }
};

template <>
struct Weights<TensorType::kQ6_K> {
  static constexpr bool kPlain = false;
  static constexpr int kUnit = 128;
  static constexpr int kBlock = model::kSuperBlock;
  static constexpr int64_t kBytes = Q6KBlock::kBytes;
  struct Unit {
    alignas(64) std::byte q[kUnit];  // levels less 32
    const float* d;
  };
  const std::byte* q;
  const float* d;
  static KERNEL_INLINE void take_half(const std::byte* row, int64_t i, Halves& halves) {
    const std::byte* const block = row + i * kBytes;
    std::memcpy(halves.at + kWholeScales * i, block + Q6KBlock::kScales, kWholeScales);
    std::memcpy(halves.at + kHalvesAt + 2 * i, block + Q6KBlock::kD, 2);
  }
  static KERNEL_INLINE void take_scales(const Halves& halves, int64_t count, Scales& scales) {
    for (int64_t b = 0; b < count; ++b) {
      const VF factor = splat_f16(halves.at + kHalvesAt + 2 * b);
      for (int64_t at = kWholeScales * b; at < kWholeScales * (b + 1); at += kLanes) {
        store(scales.at + at, mul(factor, load_i8(halves.at + at)));
      }
    }
  }
  static KERNEL_INLINE void open(const std::byte* block, int i, const Scales& scales, int64_t b,
                                 Unit& unit) {
    join_six_bits(block + 64 * i, block + Q6KBlock::kHigh + 32 * i, unit.q);
    unit.d = scales.at + kWholeScales * b + 8 * i;
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    q = unit.q + kPart * part;
    d = unit.d + 2 * part;
  }
  KERNEL_INLINE VF vec(int i) const {
    return mul(splat(d[i * kLanes / 16]), load_i8(q + i * kLanes));
  }
};

}  // namespace
}  // namespace troika::device::cpu
