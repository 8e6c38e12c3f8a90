// Builds an OpenVINO graph from the operators of a segment.
#pragma once

#include <functional>
#include <memory>
#include <openvino/core/model.hpp>
#include <string>

#include "troika/device/device.h"
#include "troika/device/openvino/module/segments.h"
#include "troika/device/openvino/module/weight_node.h"

namespace troika::device::openvino {

struct GraphForm {
  WeightForm weights = WeightForm::kBlocks;  // of those that are constants
  bool weight_inputs = false;                // where can_be_input()
  int64_t rows = 1;                          // of every input
};

// Of a segment of products.
std::vector<graph::WeightSlice> slices_of(const graph::Graph& graph, const Segment& segment);

// A graph whose inputs and outputs have the order of the segment's, with those of weight_inputs()
// behind them if the form has any; of `one_product` it has one output. Throws what OpenVINO throws;
// errors of ours come as a Result.
Result<std::shared_ptr<ov::Model>> build_graph(const Program& program, const Segment& segment,
                                               const GraphForm& form, WeightStore& weights);

// Memory of a graph once compiled, about: constant weights in the order that its kernels want, and
// what lies between its operators.
struct GraphBytes {
  int64_t weights = 0;
  int64_t between = 0;
};
GraphBytes graph_bytes(const Program& program, const Segment& segment, const GraphForm& form);

// A text that is the same for segments that give the same graph. `weight_name` gives each constant
// weight's identity.
std::string describe_graph(const Program& program, const Segment& segment, const GraphForm& form,
                           const std::function<std::string(const model::Weight&)>& weight_name);

}  // namespace troika::device::openvino
