// Stored weights as nodes of an OpenVINO graph.
#pragma once

#include <openvino/core/node_output.hpp>

#include "troika/base/result.h"
#include "troika/model/weights.h"

namespace troika::device::openvino {

// How products hold their weights.
enum class WeightForm {
  // As stored, 4 or 8 bits with a scale for each block of 32; exact.
  kBlocks,
  // FP16: an NPU's compiler expands blocks to that anyway, and takes much longer over it.
  kHalf,
};

// Outputs [n_begin, n_begin + n) and inputs [k_begin, k_begin + k) of a weight.
struct WeightSlice {
  const model::Weight* weight = nullptr;
  int64_t n_begin = 0;
  int64_t n = 0;
  int64_t k_begin = 0;
  int64_t k = 0;
};

// kUnsupported for a slice that cuts a block; kInvalidArgument for one outside the weight.
Status check_slice(const WeightSlice& slice);

// W as [n, k], to be multiplied transposed. Of Q4_1 it holds scale * (level - 8) only: OpenVINO's
// product takes that faster than blocks that have a zero point each. The rest is offset_node().
ov::Output<ov::Node> weight_node(const WeightSlice& slice, WeightForm form);

// The number of weights that share an offset; 0 if the weight has none.
int64_t offset_block(const WeightSlice& slice, WeightForm form);
// minimum + 8 * scale of every block as [n, k / block]: to be multiplied by the sums of the inputs
// of each block.
ov::Output<ov::Node> offset_node(const WeightSlice& slice);

// A vector of floats, as RmsNorm has it.
ov::Output<ov::Node> vector_node(const model::Weight& weight);

// What a compiled product holds of it, about.
int64_t weight_node_bytes(const WeightSlice& slice, WeightForm form);

}  // namespace troika::device::openvino
