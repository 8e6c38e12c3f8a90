// Whole rows of stored weights to floats, by the units of weights.inl and weights_k.inl.

namespace troika::device::cpu {
namespace {

template <TensorType type>
KERNEL_INLINE void dequantize_block(const std::byte* block, float* y) {
  using W = Weights<type>;
  W weights;
  if constexpr (W::kBlock == kPart) {
    weights.read(block);
    for (int i = 0; i < kPartVecs; ++i) store(y + i * kLanes, weights.vec(i));
  } else {
    Halves halves;
    Scales scales;
    W::take_half(block, 0, halves);
    W::take_scales(halves, 1, scales);
    for (int u = 0; u < W::kBlock / W::kUnit; ++u) {
      typename W::Unit unit;
      W::open(block, u, scales, 0, unit);
      for_each_of<W::kUnit / kPart>([&](auto part) KERNEL_LAMBDA {
        weights.template read<part>(unit);
        for (int i = 0; i < kPartVecs; ++i, y += kLanes) store(y, weights.vec(i));
      });
    }
  }
}

// n weights from the start of `row` to y, which has room for n rounded up to kLanes; the lanes
// beyond n become zero.
template <TensorType type>
KERNEL_INLINE void dequantize(const std::byte* row, int64_t n, float* y) {
  using W = Weights<type>;
  int64_t k = 0;
  for (; k + W::kBlock <= n; k += W::kBlock, row += W::kBytes) dequantize_block<type>(row, y + k);
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
    case TensorType::kQ4_K:
      return dequantize_row_as<TensorType::kQ4_K>(row, n, y);
    case TensorType::kQ6_K:
      return dequantize_row_as<TensorType::kQ6_K>(row, n, y);
  }
}

}  // namespace
}  // namespace troika::device::cpu
