#include "troika/device/systolic/tiled_weight.h"

#include <cmath>

#include "troika/model/quantize.h"

namespace troika::device::systolic {

Result<TiledWeight> TiledWeight::make(const graph::WeightSlice& slice) {
  constexpr uint16_t kInfiniteHalf = 0x7c00;
  TiledWeight tiled;
  tiled.slice_ = slice;
  tiled.tiles_.resize(static_cast<size_t>(tiled.n_tiles() * tiled.k_tiles()));
  const model::Weight& weight = *slice.weight;
  const std::byte* row = weight.data + slice.n_begin * weight.row_bytes() +
                         model::row_bytes(weight.type, slice.k_begin);
  std::vector<float> values(static_cast<size_t>(slice.k));
  for (int64_t n = 0; n < slice.n; ++n, row += weight.row_bytes()) {
    model::dequantize_row(weight.type, row, values);
    HalfTile* const tiles = &tiled.tiles_[static_cast<size_t>(n / kTile * tiled.k_tiles())];
    for (int64_t k = 0; k < slice.k; ++k) {
      const float value = values[static_cast<size_t>(k)];
      const uint16_t half = model::f32_to_f16(value);
      if ((half & kInfiniteHalf) == kInfiniteHalf) {
        return make_error(ErrorCode::kUnsupported,
                          "weight {} holds {:g} in row {}, which FP16 cannot: compute it on a "
                          "device that is exact",
                          weight.name, value, slice.n_begin + n);
      }
      tiles[k / kTile].at[k % kTile][n % kTile] = half;
    }
  }
  return tiled;
}

}  // namespace troika::device::systolic
