#include "troika/device/systolic/tiled_weight.h"

#include <cmath>

#include "troika/model/levels.h"
#include "troika/model/quantize.h"

namespace troika::device::systolic {

Result<TiledWeight> TiledWeight::make(const graph::WeightSlice& slice) {
  constexpr uint16_t kInfiniteHalf = 0x7c00;
  TiledWeight tiled;
  tiled.slice_ = slice;
  tiled.tiles_.resize(static_cast<size_t>(tiled.n_tiles() * tiled.k_tiles()));
  const model::Weight& weight = *slice.weight;
  static_assert(kTile == model::kLevelGroup);
  std::vector<float> levels(static_cast<size_t>(slice.k));
  std::vector<model::LevelScale> groups(static_cast<size_t>(tiled.k_tiles()));
  for (int64_t n = 0; n < slice.n; ++n) {
    model::row_levels(weight.type, graph::row_of(slice, n), levels, groups);
    HalfTile* const tiles = &tiled.tiles_[static_cast<size_t>(n / kTile * tiled.k_tiles())];
    for (size_t tile = 0; tile < groups.size(); ++tile) {
      tiles[tile].scale[n % kTile] = groups[tile].scale;
      tiles[tile].offset[n % kTile] = groups[tile].offset;
    }
    for (int64_t k = 0; k < slice.k; ++k) {
      const float value = levels[static_cast<size_t>(k)];
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
