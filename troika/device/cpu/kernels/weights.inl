// Stored weights to vectors of floats, 32 at a time. Included by the one source file of each
// instruction set after its vec_*.h.
//
// d * q is exact in float (11 x 8 bits), so that d * q + m has one rounding whether or not the
// processor fuses it: every instruction set gets the same weights.

namespace troika::device::cpu {
namespace {

using model::TensorType;

constexpr int kBlock = 32;
constexpr int kBlockVecs = kBlock / kLanes;
// Blocks whose scales are converted at once.
constexpr int kScaleBlocks = 32;

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

// 32 consecutive weights of a row; vec(i) gives weights kLanes * i .. of them. The scales of up to
// kScaleBlocks blocks are copied by take_half() and converted by take_scales(); read(block, scales,
// i) then uses those of the i-th, read(block) finds its own.
template <TensorType type>
struct Weights {
  static constexpr bool kPlain = true;
  static constexpr int64_t kBytes = kBlock * element_bytes(type);
  const std::byte* p;
  static KERNEL_INLINE void take_half(const std::byte*, int64_t, Halves&) {}
  static KERNEL_INLINE void take_scales(const Halves&, int64_t, Scales&) {}
  KERNEL_INLINE void read(const std::byte* block) { p = block; }
  KERNEL_INLINE void read(const std::byte* block, const Scales&, int64_t) { p = block; }
  KERNEL_INLINE VF vec(int i) const {
    return load_plain<type>(p + i * kLanes * element_bytes(type));
  }
};

template <>
struct Weights<TensorType::kQ4_0> {
  static constexpr bool kPlain = false;
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
  KERNEL_INLINE void read(const std::byte* block, const Scales& scales, int64_t i) {
    nibbles.read(block + 2, splat(scales.at[i]), splat(scales.at[kScaleBlocks + i]));
  }
  KERNEL_INLINE VF vec(int i) const { return nibbles.vec(i); }
};

template <>
struct Weights<TensorType::kQ4_1> {
  static constexpr bool kPlain = false;
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
  KERNEL_INLINE void read(const std::byte* block, const Scales& scales, int64_t i) {
    nibbles.read(block + 4, splat(scales.at[2 * i]), splat(scales.at[2 * i + 1]));
  }
  KERNEL_INLINE VF vec(int i) const { return nibbles.vec(i); }
};

template <>
struct Weights<TensorType::kQ8_0> {
  static constexpr bool kPlain = false;
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
  KERNEL_INLINE void read(const std::byte* block, const Scales& scales, int64_t i) {
    d = splat(scales.at[i]);
    q = block + 2;
  }
  KERNEL_INLINE VF vec(int i) const { return mul(d, load_i8(q + i * kLanes)); }
};

// n weights from the start of `row` to y, which has room for n rounded up to kLanes; the lanes
// beyond n become zero.
template <TensorType type>
KERNEL_INLINE void dequantize(const std::byte* row, int64_t n, float* y) {
  int64_t k = 0;
  for (; k + kBlock <= n; k += kBlock, row += Weights<type>::kBytes) {
    Weights<type> weights;
    weights.read(row);
    for (int i = 0; i < kBlockVecs; ++i) store(y + k + i * kLanes, weights.vec(i));
  }
  if constexpr (Weights<type>::kPlain) {
    for (; k + kLanes <= n; k += kLanes, row += kLanes * element_bytes(type)) {
      store(y + k, load_plain<type>(row));
    }
    if (k < n) store(y + k, load_plain_first<type>(row, static_cast<int>(n - k)));
  }
}

template <TensorType type>
void dequantize_row_as(const std::byte* row, int64_t n, float* y) {
  const int64_t whole = n / kLanes * kLanes;
  dequantize<type>(row, whole, y);
  if constexpr (Weights<type>::kPlain) {
    const int rest = static_cast<int>(n - whole);
    if (rest == 0) return;
    store_first(y + whole, load_plain_first<type>(row + whole * element_bytes(type), rest), rest);
  }
}

void dequantize_row(TensorType type, const std::byte* row, int64_t n, float* y) {
  switch (type) {
    case TensorType::kF32:
      return dequantize_row_as<TensorType::kF32>(row, n, y);
    case TensorType::kF16:
      return dequantize_row_as<TensorType::kF16>(row, n, y);
    case TensorType::kBF16:
      return dequantize_row_as<TensorType::kBF16>(row, n, y);
    case TensorType::kQ8_0:
      return dequantize_row_as<TensorType::kQ8_0>(row, n, y);
    case TensorType::kQ4_0:
      return dequantize_row_as<TensorType::kQ4_0>(row, n, y);
    case TensorType::kQ4_1:
      return dequantize_row_as<TensorType::kQ4_1>(row, n, y);
  }
}

}  // namespace
}  // namespace troika::device::cpu
