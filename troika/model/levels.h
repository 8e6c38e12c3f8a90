// Weights as the levels that block formats store: few bits hold a level exactly, where the weight
// itself would be rounded. w = scale * level + offset.
#pragma once

#include <cstddef>
#include <span>

#include "troika/model/tensor_type.h"

namespace troika::model {

inline constexpr int kLevelGroup = 32;  // neighbours with one scale and one offset

struct LevelScale {
  float scale = 1;
  float offset = 0;
};

// One row: `levels.size()` weights (a multiple of the block) from `row`, and a scale for each group
// of them, the last of which may be shorter. Levels are whole numbers of at most 11 bits, Q6_K's of
// at most 13; weights of plain floats are their own levels.
void row_levels(TensorType type, const std::byte* row, std::span<float> levels,
                std::span<LevelScale> groups);

}  // namespace troika::model
