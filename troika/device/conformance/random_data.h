// Random activations and weights for the cases: seeded, and the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troika/model/tensor_type.h"

namespace troika::device::conformance {

// How activations are spread about zero.
enum class Spread {
  kNormal,    // like a normal distribution of deviation 1
  kSmall,     // of deviation 0.01, as embeddings have
  kOutliers,  // the same with a few values up to some hundreds, as models have in every layer
  kHuge,      // the same with one value of 26,000 in a row, as SmolLM2's residual stream has
};

class RandomData {
 public:
  // A stream of its own for each name.
  explicit RandomData(std::string_view name);

  // Mean 0, deviation 1, never beyond 3.5: the sum of four even draws.
  float normal();
  // 0 to n - 1.
  int64_t below(int64_t n);

  // `rows` rows of `width` values.
  std::vector<float> activations(int64_t rows, int64_t width, Spread spread);
  // A stored matrix [rows, cols], quantized from normal values of deviation `scale`.
  std::vector<std::byte> weights(model::TensorType type, int64_t rows, int64_t cols, float scale);

 private:
  uint64_t next();

  uint64_t state_;
};

}  // namespace troika::device::conformance
