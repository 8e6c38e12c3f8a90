#include "troika/device/systolic/tile.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troika::device::systolic {
namespace {

// Sums that are kept in registers: 4 rows of two vectors.
constexpr int64_t kRows = 4;

#if defined(__x86_64__)
// The attribute instead of compiler flags for the file: nothing else here may need AVX2.
__attribute__((target("avx2,fma"))) void multiply_tile_avx2(const InputTile& x, const WeightTile& w,
                                                            Tile& sums) {
  constexpr int64_t kLanes = 8;
  for (int64_t m = 0; m < kTile; m += kRows) {
    for (int64_t n = 0; n < kTile; n += 2 * kLanes) {
      __m256 sum[kRows][2];
      for (auto& row : sum) row[0] = row[1] = _mm256_setzero_ps();
      for (int64_t k = 0; k < kTile; ++k) {
        const __m256 left = _mm256_load_ps(&w.at[k][n]);
        const __m256 right = _mm256_load_ps(&w.at[k][n + kLanes]);
        for (int64_t r = 0; r < kRows; ++r) {
          const __m256 input = _mm256_set1_ps(x.at[m + r][k]);
          sum[r][0] = _mm256_fmadd_ps(input, left, sum[r][0]);
          sum[r][1] = _mm256_fmadd_ps(input, right, sum[r][1]);
        }
      }
      for (int64_t r = 0; r < kRows; ++r) {
        const __m256 total = _mm256_set1_ps(x.totals[m + r]);
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t at = n + half * kLanes;
          float* const to = &sums.at[m + r][at];
          const __m256 scaled = _mm256_mul_ps(_mm256_load_ps(w.scale + at), sum[r][half]);
          const __m256 offset = _mm256_mul_ps(_mm256_load_ps(w.offset + at), total);
          _mm256_store_ps(to, _mm256_add_ps(_mm256_load_ps(to), _mm256_add_ps(scaled, offset)));
        }
      }
    }
  }
}
#endif

}  // namespace

void multiply_tile_portable(const InputTile& x, const WeightTile& w, Tile& sums) {
  using Vector = float __attribute__((vector_size(16)));
  constexpr int64_t kLanes = 4;
  for (int64_t m = 0; m < kTile; m += kRows) {
    for (int64_t n = 0; n < kTile; n += 2 * kLanes) {
      Vector sum[kRows][2] = {};
      for (int64_t k = 0; k < kTile; ++k) {
        Vector left, right;
        std::memcpy(&left, &w.at[k][n], sizeof left);
        std::memcpy(&right, &w.at[k][n + kLanes], sizeof right);
        for (int64_t r = 0; r < kRows; ++r) {
          sum[r][0] += x.at[m + r][k] * left;
          sum[r][1] += x.at[m + r][k] * right;
        }
      }
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t half = 0; half < 2; ++half) {
          Vector scale, offset, result;
          const int64_t at = n + half * kLanes;
          float* const to = &sums.at[m + r][at];
          std::memcpy(&scale, w.scale + at, sizeof scale);
          std::memcpy(&offset, w.offset + at, sizeof offset);
          std::memcpy(&result, to, sizeof result);
          result += scale * sum[r][half] + offset * x.totals[m + r];
          std::memcpy(to, &result, sizeof result);
        }
      }
    }
  }
}

MultiplyTile multiply_tile_for([[maybe_unused]] std::string_view kernels) {
#if defined(__x86_64__)
  if (kernels == "avx2" || kernels == "avx512") return multiply_tile_avx2;
#endif
  return multiply_tile_portable;
}

}  // namespace troika::device::systolic
