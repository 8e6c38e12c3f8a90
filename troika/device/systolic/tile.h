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

// Halves.
struct alignas(64) InputTile {
  float at[kTile][kTile] = {};
  float totals[kTile] = {};  // of the rows
};

// Inputs first: at[k][n]. A weight is scale[n] * at[k][n] + offset[n].
template <class Half>
struct alignas(64) Weights {
  Half at[kTile][kTile] = {};
  float scale[kTile] = {};
  float offset[kTile] = {};
};
using HalfTile = Weights<uint16_t>;  // as they are kept
using WeightTile = Weights<float>;   // the same, in the array

// sums[m][n] += scale[n] * s + offset[n] * totals[m], s being the sum over k of x[m][k] * w[k][n],
// k ascending from zero, in FP32. What is multiplied there are halves, whose products are exact in
// FP32: s has the same bits with and without fused multiply-adds. The rest is never fused.
using MultiplyTile = void (*)(const InputTile& x, const WeightTile& w, Tile& sums);

void multiply_tile_portable(const InputTile& x, const WeightTile& w, Tile& sums);

// The fastest for a machine that runs these kernels of the `cpu` device ("avx2").
MultiplyTile multiply_tile_for(std::string_view kernels);

}  // namespace troika::device::systolic
