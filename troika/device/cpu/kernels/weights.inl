// Stored weights to vectors of floats, some tens at a time. Included by the one source file of each
// instruction set after its vec_*.h.
//
// d * q is exact in float (11 x 8 bits; in the K-quants 11 x 6 x 4 and 11 x 8 x 5), so that
// d * q + m has one rounding whether or not the processor fuses it: every instruction set gets the
// same weights.

namespace troika::device::cpu {
namespace {

using model::TensorType;

// Weights whose scales are converted at once.
constexpr int kScaleWeights = 1024;
constexpr int kScaleBlocks = kScaleWeights / 32;
constexpr int kSuperBlocks = kScaleWeights / model::kSuperBlock;

constexpr int kPart = 32;
constexpr int kPartVecs = kPart / kLanes;

// f(0), f(1), ... f(n - 1), with numbers that are constants there.
#define KERNEL_LAMBDA __attribute__((always_inline))
template <int n, class F>
KERNEL_INLINE void for_each_of(const F& f) {
  [&f]<int... i>(std::integer_sequence<int, i...>) KERNEL_LAMBDA {
    (f(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, n>());
}

// Scales of consecutive blocks of a row, as stored and as floats. Broadcasting a float from memory
// costs no arithmetic unit, unlike converting each half at its block. The halves are copied long
// before they are converted, so that the small stores have reached the cache by then.
struct Halves {
  alignas(64) std::byte at[4 * kScaleBlocks];
};
struct Scales {
  alignas(64) float at[2 * kScaleBlocks];
};

// The scale bytes (2 or 4) of the i-th block of a row.
template <int bytes>
KERNEL_INLINE void copy_half(const std::byte* row, int64_t stride, int64_t i, Halves& halves) {
  std::memcpy(halves.at + bytes * i, row + i * stride, bytes);
  asm volatile("");  // else the compiler gathers them in vectors, at several times the cost
}

KERNEL_INLINE void convert_halves(const Halves& halves, int64_t count, Scales& scales) {
  for (int64_t i = 0; i < count; i += kLanes) store(scales.at + i, load_f16(halves.at + 2 * i));
}

constexpr int64_t element_bytes(TensorType type) { return type == TensorType::kF32 ? 4 : 2; }

template <TensorType type>
KERNEL_INLINE VF load_plain(const std::byte* p) {
  if constexpr (type == TensorType::kF32) return load(reinterpret_cast<const float*>(p));
  if constexpr (type == TensorType::kF16) return load_f16(p);
  if constexpr (type == TensorType::kBF16) return load_bf16(p);
}

// The first n < kLanes; the other lanes are zero and their memory is not touched.
template <TensorType type>
KERNEL_INLINE VF load_plain_first(const std::byte* p, int n) {
  alignas(64) std::byte lanes[kLanes * sizeof(float)] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n * element_bytes(type)));
  return load_plain<type>(lanes);
}

// kPart consecutive weights of a row, which vec(i) gives as vectors.
//
// kBlock weights lie in kBytes bytes; kUnit of them are opened together, because they share bytes,
// and then read part after part. The scales of up to kScaleWeights weights are copied by
// take_half() and converted by take_scales(); open() then uses those of the b-th block. Where a
// block is one part, read(block) finds its own.
template <TensorType type>
struct Weights {
  static constexpr bool kPlain = true;
  static constexpr int kUnit = kPart;
  static constexpr int kBlock = kPart;
  static constexpr int64_t kBytes = kBlock * element_bytes(type);
  const std::byte* p;
  static KERNEL_INLINE void take_half(const std::byte*, int64_t, Halves&) {}
  static KERNEL_INLINE void take_scales(const Halves&, int64_t, Scales&) {}
  KERNEL_INLINE void read(const std::byte* block) { p = block; }
  struct Unit {
    const std::byte* p;
  };
  static KERNEL_INLINE void open(const std::byte* block, int, const Scales&, int64_t, Unit& unit) {
    unit.p = block;
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    p = unit.p;
  }
  KERNEL_INLINE VF vec(int i) const {
    return load_plain<type>(p + i * kLanes * element_bytes(type));
  }
};

// An opened block of 32 weights, and where its scale is.
struct SmallBlock {
  const std::byte* p;
  const float* d;
};

template <>
struct Weights<TensorType::kQ4_0> {
  static constexpr bool kPlain = false;
  static constexpr int kUnit = kPart;
  static constexpr int kBlock = kPart;
  static constexpr int64_t kBytes = 18;
  Nibbles nibbles;
  static KERNEL_INLINE void take_half(const std::byte* row, int64_t i, Halves& halves) {
    copy_half<2>(row, kBytes, i, halves);
  }
  static KERNEL_INLINE void take_scales(const Halves& halves, int64_t count, Scales& scales) {
    convert_halves(halves, count, scales);
    for (int64_t i = 0; i < count; i += kLanes) {
      store(scales.at + kScaleBlocks + i, mul(load(scales.at + i), splat(-8)));
    }
  }
  KERNEL_INLINE void read(const std::byte* block) {
    const VF d = splat_f16(block);
    nibbles.read(block + 2, d, mul(d, splat(-8)));
  }
  using Unit = SmallBlock;
  static KERNEL_INLINE void open(const std::byte* block, int, const Scales& scales, int64_t b,
                                 Unit& unit) {
    unit = {block, scales.at + b};
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    nibbles.read(unit.p + 2, splat(unit.d[0]), splat(unit.d[kScaleBlocks]));
  }
  KERNEL_INLINE VF vec(int i) const { return nibbles.vec(i); }
};

template <>
struct Weights<TensorType::kQ4_1> {
  static constexpr bool kPlain = false;
  static constexpr int kUnit = kPart;
  static constexpr int kBlock = kPart;
  static constexpr int64_t kBytes = 20;
  Nibbles nibbles;
  static KERNEL_INLINE void take_half(const std::byte* row, int64_t i, Halves& halves) {
    copy_half<4>(row, kBytes, i, halves);
  }
  static KERNEL_INLINE void take_scales(const Halves& halves, int64_t count, Scales& scales) {
    convert_halves(halves, 2 * count, scales);
  }
  KERNEL_INLINE void read(const std::byte* block) {
    VF d, m;
    splat_f16_pair(block, d, m);
    nibbles.read(block + 4, d, m);
  }
  using Unit = SmallBlock;
  static KERNEL_INLINE void open(const std::byte* block, int, const Scales& scales, int64_t b,
                                 Unit& unit) {
    unit = {block, scales.at + 2 * b};
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    nibbles.read(unit.p + 4, splat(unit.d[0]), splat(unit.d[1]));
  }
  KERNEL_INLINE VF vec(int i) const { return nibbles.vec(i); }
};

template <>
struct Weights<TensorType::kQ8_0> {
  static constexpr bool kPlain = false;
  static constexpr int kUnit = kPart;
  static constexpr int kBlock = kPart;
  static constexpr int64_t kBytes = 34;
  VF d;
  const std::byte* q;
  static KERNEL_INLINE void take_half(const std::byte* row, int64_t i, Halves& halves) {
    copy_half<2>(row, kBytes, i, halves);
  }
  static KERNEL_INLINE void take_scales(const Halves& halves, int64_t count, Scales& scales) {
    convert_halves(halves, count, scales);
  }
  KERNEL_INLINE void read(const std::byte* block) {
    d = splat_f16(block);
    q = block + 2;
  }
  using Unit = SmallBlock;
  static KERNEL_INLINE void open(const std::byte* block, int, const Scales& scales, int64_t b,
                                 Unit& unit) {
    unit = {block, scales.at + b};
  }
  template <int part>
  KERNEL_INLINE void read(const Unit& unit) {
    d = splat(unit.d[0]);
    q = unit.p + 2;
  }
  KERNEL_INLINE VF vec(int i) const { return mul(d, load_i8(q + i * kLanes)); }
};

}  // namespace
}  // namespace troika::device::cpu
