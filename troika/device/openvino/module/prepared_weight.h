// Weights in the arrangement in which OpenVINO takes them.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "troika/base/held_values.h"
#include "troika/base/result.h"
#include "troika/graph/graph.h"

namespace troika::device::openvino {

// How products hold their weights.
enum class WeightForm {
  // As stored, 4 or 8 bits with a scale for each block of 32; plain types as FP32. Exact.
  kBlocks,
  // The same without what blocks are offset by: the host adds it, see block_offsets().
  kLevels,
  // FP16: an NPU's compiler expands blocks to that anyway, and takes much longer over it.
  kHalf,
};

// kUnsupported for a slice that cuts a block; kInvalidArgument for one outside the weight.
Status check_slice(const graph::WeightSlice& slice);

// Memory as aligned as OpenVINO wants it, or it would copy.
struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }
  static constexpr std::align_val_t kAlignment{64};
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

// What the elements of `values` are.
enum class ValueType { kInt4, kInt8, kHalf, kFloat };

// W[n, k] = values * scales + offsets, where scales and offsets are those of blocks of 32 along K.
struct PreparedWeight {
  int64_t n = 0;
  int64_t k = 0;
  ValueType type = ValueType::kFloat;
  AlignedBytes values;   // [n, k]; 4 bits: the even one of two in the low half of a byte
  AlignedBytes scales;   // floats [n, k / 32]; null: none
  AlignedBytes offsets;  // floats [n, k / 32]; null: none
  int64_t bytes = 0;     // of all three
};

inline constexpr int64_t kWeightBlock = 32;

// What PreparedWeight::bytes would be.
int64_t prepared_bytes(const graph::WeightSlice& slice, WeightForm form);

// What kLevels leaves out, as floats [k / 32, n]; empty: nothing. Slices as for prepare().
std::vector<float> block_offsets(std::span<const graph::WeightSlice> slices);

// Prepares slices once, for as long as somebody holds them.
class WeightStore {
 public:
  // Slices of one type and with the same inputs become one weight, whose outputs are theirs one
  // after another. They must have passed check_slice(); their weights stay where they are while the
  // result lives.
  std::shared_ptr<const PreparedWeight> prepare(std::span<const graph::WeightSlice> slices,
                                                WeightForm form);

  // Of all that is held.
  int64_t bytes() const;

 private:
  using Key = std::pair<std::vector<graph::WeightSlice>, WeightForm>;
  HeldValues<Key, const PreparedWeight> weights_;
};

}  // namespace troika::device::openvino
