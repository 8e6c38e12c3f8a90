// The systolic array in software: computes products tile by tile and counts what it does.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/systolic/tile.h"
#include "troika/device/systolic/tiled_weight.h"

namespace troika::device::systolic {

// Which operand stays in the array while tiles of the other one pass through. A real array is
// faster with the smaller one in place. Results have the same bits.
enum class Stationary { kWeights, kInputs };

struct TileCounts {
  int64_t tiles = 0;  // 32 x 32 x 32 multiply-adds each
  int64_t loads = 0;  // of a tile that then stays
};

// Threads: one at a time.
class Array {
 public:
  explicit Array(const cpu::KernelTable& kernels);

  // Makes room for products of `max_rows` rows.
  void reserve(int64_t max_rows, const TiledWeight& weight, Stationary stationary);

  // Rounds `rows` rows of `width` inputs to FP16 and pads them with zeros to whole tiles, at least
  // of `max_rows` rows. `stride` in floats.
  void load_inputs(const float* x, int64_t stride, int64_t rows, int64_t width, int64_t max_rows);

  // y = x W^T of the inputs loaded last, padding included; writes their real rows only.
  TileCounts multiply(const TiledWeight& weight, Stationary stationary, float* y, int64_t stride);

  int64_t bytes() const;

 private:
  struct Results {
    float* y = nullptr;
    int64_t stride = 0;
    int64_t n = 0;
  };

  TileCounts hold_weights(const TiledWeight& weight, const Results& results);
  TileCounts hold_inputs(const TiledWeight& weight, const Results& results);
  void load_weight(const HalfTile& tile);
  void clear_sums(int64_t count);
  void write(const Tile& sums, int64_t m_tile, int64_t n_tile, const Results& results) const;
  const InputTile& input(int64_t m_tile, int64_t k_tile) const {
    return inputs_[static_cast<size_t>(m_tile * k_tiles_ + k_tile)];
  }

  const cpu::KernelTable& kernels_;
  const MultiplyTile multiply_tile_;
  std::vector<InputTile> inputs_;  // [m_tile][k_tile]
  std::vector<Tile> sums_;         // of one n_tile or one m_tile
  WeightTile weight_;
  int64_t rows_ = 0;
  int64_t m_tiles_ = 0;
  int64_t k_tiles_ = 0;
};

}  // namespace troika::device::systolic
