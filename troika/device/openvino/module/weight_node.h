// Prepared weights as nodes of an OpenVINO graph.
#pragma once

#include <memory>
#include <openvino/core/node_output.hpp>

#include "troika/device/openvino/module/prepared_weight.h"

namespace troika::device::openvino {

// W as [n, k] less its offsets, to be multiplied transposed. OpenVINO's product takes blocks with a
// scale; it takes them faster without an offset each.
ov::Output<ov::Node> weight_node(const std::shared_ptr<const PreparedWeight>& weight);

// The blocks' offsets as [n, k / 32]: to be multiplied by the sums of the inputs of each block.
ov::Output<ov::Node> offset_node(const std::shared_ptr<const PreparedWeight>& weight);

// A vector of floats, as RmsNorm has it.
ov::Output<ov::Node> vector_node(const model::Weight& weight);

}  // namespace troika::device::openvino
