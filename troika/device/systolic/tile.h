// Tiles: what the systolic array holds and multiplies. The only place that knows an instruction
// set.
#pragma once

#include <cstdint>
#include <string_view>

namespace troika::device::systolic {

// Rows, outputs and inputs of a tile; the array has kTile x kTile cells.
inline constexpr int64_t kTile = 32;

inline constexpr int64_t tiles_over(int64_t length) { return (length + kTile - 1) / kTile; }

struct alignas(64) Tile {
  float at[kTile][kTile] = {};
};

// Weights as they are kept: halves, inputs first: at[k][n].
struct alignas(64) HalfTile {
  uint16_t at[kTile][kTile] = {};
};

// sums[m][n] += sum over k of x[m][k] * w[k][n], k ascending from zero, in FP32. The inputs are
// halves, whose products are exact in FP32: the bits are the same with and without fused
// multiply-adds.
using MultiplyTile = void (*)(const Tile& x, const Tile& w, Tile& sums);

void multiply_tile_portable(const Tile& x, const Tile& w, Tile& sums);

// The fastest for a machine that runs these kernels of the `cpu` device ("avx2").
MultiplyTile multiply_tile_for(std::string_view kernels);

}  // namespace troika::device::systolic
