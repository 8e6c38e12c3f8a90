#include "troika/model/levels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "troika/model/k_quants.h"
#include "troika/model/quantize.h"

namespace troika::model {
namespace {

constexpr uint16_t kOne = 0x3c00;  // as a half
constexpr uint16_t kZero = 0;

// Where a block keeps the halves that all of its weights are multiplied with.
struct Halves {
  int scale = 0;
  int offset = -1;  // -1: its weights have none
};

Halves halves_of(TensorType type) {
  if (type == TensorType::kQ6_K) return {Q6KBlock::kD};
  if (type == TensorType::kQ4_1 || type == TensorType::kQ4_K) return {0, 2};
  return {};
}

void set_half(std::byte* block, int place, uint16_t bits) {
  std::memcpy(block + place, &bits, sizeof bits);
}

}  // namespace

void row_levels(TensorType type, const std::byte* row, std::span<float> levels,
                std::span<LevelScale> groups) {
  const TypeTraits& t = traits(type);
  assert(groups.size() * kLevelGroup >= levels.size());
  std::fill(groups.begin(), groups.end(), LevelScale{});
  if (t.block_weights == 1) return dequantize_row(type, row, levels);
  const Halves halves = halves_of(type);
  std::array<std::byte, std::max(Q4KBlock::kBytes, Q6KBlock::kBytes)> block;
  std::array<float, kSuperBlock> offsets = {};
  const auto weights = static_cast<size_t>(t.block_weights);
  for (size_t i = 0; i < levels.size(); i += weights, row += t.block_bytes) {
    std::copy_n(row, t.block_bytes, block.begin());
    // What the block would hold with no scale is the offsets, and with one of 1 and no offset the
    // levels.
    if (halves.offset >= 0) {
      set_half(block.data(), halves.scale, kZero);
      dequantize_row(type, block.data(), std::span(offsets).first(weights));
      set_half(block.data(), halves.offset, kZero);
    }
    set_half(block.data(), halves.scale, kOne);
    dequantize_row(type, block.data(), levels.subspan(i, weights));
    for (size_t at = 0; at < weights; at += kLevelGroup) {
      groups[(i + at) / kLevelGroup] = {f16_at(row + halves.scale), offsets[at]};
    }
  }
}

}  // namespace troika::model
