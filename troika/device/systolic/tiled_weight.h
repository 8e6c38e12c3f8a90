// A slice of a weight as the array holds it: FP16 tiles, padded with zeros. Of quantization blocks
// the tiles hold the levels, which FP16 does not round as it does weights.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/systolic/tile.h"
#include "troika/graph/graph.h"

namespace troika::device::systolic {

class TiledWeight {
 public:
  // Slow: converts every weight. kUnsupported if a plain float is beyond FP16. The slice lies
  // inside the weight and on its quantization blocks.
  static Result<TiledWeight> make(const graph::WeightSlice& slice);

  int64_t n_tiles() const { return tiles_over(slice_.n); }
  int64_t k_tiles() const { return tiles_over(slice_.k); }
  int64_t n() const { return slice_.n; }
  const HalfTile& tile(int64_t n_tile, int64_t k_tile) const {
    return tiles_[static_cast<size_t>(n_tile * k_tiles() + k_tile)];
  }
  int64_t bytes() const { return static_cast<int64_t>(tiles_.size() * sizeof(HalfTile)); }

 private:
  graph::WeightSlice slice_;
  std::vector<HalfTile> tiles_;  // [n_tile][k_tile]
};

}  // namespace troika::device::systolic
