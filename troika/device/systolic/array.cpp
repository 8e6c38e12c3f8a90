#include "troika/device/systolic/array.h"

#include <algorithm>
#include <numeric>

#include "troika/device/systolic/half.h"

namespace troika::device::systolic {

Array::Array(const cpu::KernelTable& kernels)
    : kernels_(kernels), multiply_tile_(multiply_tile_for(kernels.name)) {}

void Array::reserve(int64_t max_rows, const TiledWeight& weight, Stationary stationary) {
  const auto grow = [](auto& tiles, int64_t count) {
    tiles.resize(std::max(tiles.size(), static_cast<size_t>(count)));
  };
  const int64_t m_tiles = tiles_over(max_rows);
  grow(inputs_, m_tiles * weight.k_tiles());
  grow(sums_, stationary == Stationary::kWeights ? m_tiles : weight.n_tiles());
}

void Array::load_inputs(const float* x, int64_t stride, int64_t rows, int64_t width,
                        int64_t max_rows) {
  rows_ = rows;
  m_tiles_ = tiles_over(max_rows);
  k_tiles_ = tiles_over(width);
  const int64_t used = m_tiles_ * k_tiles_;
  // All tiles are written: what an earlier product left there would not be zero.
  for (int64_t tile = 0; tile < used; ++tile) {
    const int64_t first_row = tile / k_tiles_ * kTile;
    const int64_t first_k = tile % k_tiles_ * kTile;
    const int64_t m_count = std::clamp<int64_t>(rows - first_row, 0, kTile);
    const int64_t k_count = std::min(kTile, width - first_k);
    InputTile& to = inputs_[static_cast<size_t>(tile)];
    if (m_count < kTile || k_count < kTile) to = InputTile{};
    for (int64_t m = 0; m < m_count; ++m) {
      const float* const from = x + (first_row + m) * stride + first_k;
      for (int64_t k = 0; k < k_count; ++k) to.at[m][k] = round_to_half(from[k]);
      to.totals[m] = std::accumulate(to.at[m], to.at[m] + k_count, 0.0f);
    }
  }
}

TileCounts Array::multiply(const TiledWeight& weight, Stationary stationary, float* y,
                           int64_t stride) {
  const Results results{y, stride, weight.n()};
  return stationary == Stationary::kWeights ? hold_weights(weight, results)
                                            : hold_inputs(weight, results);
}

TileCounts Array::hold_weights(const TiledWeight& weight, const Results& results) {
  TileCounts counts;
  for (int64_t n = 0; n < weight.n_tiles(); ++n) {
    clear_sums(m_tiles_);
    for (int64_t k = 0; k < k_tiles_; ++k) {
      load_weight(weight.tile(n, k));
      ++counts.loads;
      for (int64_t m = 0; m < m_tiles_; ++m) {
        multiply_tile_(input(m, k), weight_, sums_[static_cast<size_t>(m)]);
        ++counts.tiles;
      }
    }
    for (int64_t m = 0; m < m_tiles_; ++m) write(sums_[static_cast<size_t>(m)], m, n, results);
  }
  return counts;
}

TileCounts Array::hold_inputs(const TiledWeight& weight, const Results& results) {
  TileCounts counts;
  for (int64_t m = 0; m < m_tiles_; ++m) {
    clear_sums(weight.n_tiles());
    for (int64_t k = 0; k < k_tiles_; ++k) {
      ++counts.loads;  // of input(m, k)
      for (int64_t n = 0; n < weight.n_tiles(); ++n) {
        load_weight(weight.tile(n, k));
        multiply_tile_(input(m, k), weight_, sums_[static_cast<size_t>(n)]);
        ++counts.tiles;
      }
    }
    for (int64_t n = 0; n < weight.n_tiles(); ++n) {
      write(sums_[static_cast<size_t>(n)], m, n, results);
    }
  }
  return counts;
}

void Array::load_weight(const HalfTile& tile) {
  kernels_.dequantize_row(model::TensorType::kF16, reinterpret_cast<const std::byte*>(tile.at),
                          kTile * kTile, &weight_.at[0][0]);
  std::copy_n(tile.scale, kTile, weight_.scale);
  std::copy_n(tile.offset, kTile, weight_.offset);
}

void Array::clear_sums(int64_t count) { std::fill_n(sums_.begin(), count, Tile{}); }

void Array::write(const Tile& sums, int64_t m_tile, int64_t n_tile, const Results& results) const {
  const int64_t first_row = m_tile * kTile;
  const int64_t first_n = n_tile * kTile;
  const int64_t m_count = std::clamp<int64_t>(rows_ - first_row, 0, kTile);
  const int64_t n_count = std::min(kTile, results.n - first_n);
  for (int64_t m = 0; m < m_count; ++m) {
    std::copy_n(sums.at[m], n_count, results.y + (first_row + m) * results.stride + first_n);
  }
}

int64_t Array::bytes() const {
  return static_cast<int64_t>(inputs_.capacity() * sizeof(InputTile) +
                              sums_.capacity() * sizeof(Tile));
}

}  // namespace troika::device::systolic
