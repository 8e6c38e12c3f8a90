// Weights that a graph takes as inputs, in place, so that the device has no copy of them and layers
// of one shape share a graph.
#pragma once

#include <openvino/runtime/tensor.hpp>
#include <vector>

#include "troika/device/openvino/module/segments.h"

namespace troika::device::openvino {

struct WeightInput {
  graph::OpId op = 0;  // that it belongs to
  ov::Tensor tensor;   // over the weight's own memory: [n, k], of RmsNorm [n]
};

// Whether an operator's weight can be an input: FP32 or FP16 and, of a product, all of its inputs,
// since rows of less lie apart.
bool can_be_input(const graph::Graph& graph, const graph::Op& op);

// In the order of the segment's operators. The weights must stay where they are while the tensors
// are used.
std::vector<WeightInput> weight_inputs(const Program& program, const Segment& segment);

}  // namespace troika::device::openvino
