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
  WeightForm weights = WeightForm::kBlocks;
  // Rows of every input: fixed, or any number from 1 to this.
  int64_t max_rows = 1;
  bool fixed_rows = true;
};

// A graph whose inputs and outputs have the order of the segment's. Throws what OpenVINO throws;
// errors of ours come as a Result.
Result<std::shared_ptr<ov::Model>> build_graph(const Program& program, const Segment& segment,
                                               const GraphForm& form);

// What its weights take once compiled, about.
int64_t constant_bytes(const Program& program, const Segment& segment, const GraphForm& form);

// A text that is the same for segments that give the same graph. `weight_name` gives each weight's
// identity.
std::string describe_graph(const Program& program, const Segment& segment, const GraphForm& form,
                           const std::function<std::string(const model::Weight&)>& weight_name);

}  // namespace troika::device::openvino
