// Segments: a Program cut into runs of operators, each of which is one OpenVINO graph or goes
// through the host's kernels.
#pragma once

#include <vector>

#include "troika/device/device.h"

namespace troika::device::openvino {

struct Segment {
  bool on_host = false;
  graph::RowCount rows = graph::RowCount::kTokens;
  std::vector<graph::OpId> ops;
  // Of a graph: what it reads from memory and what it must write there; indices into
  // Program::tensors, each once.
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};

// True for operators that look at block tables, token ids or positions: they run on the host.
bool runs_on_host(graph::OpKind kind);

// kInvalidArgument if an operator's tensor is not among Program::tensors.
Result<std::vector<Segment>> make_segments(const Program& program);

}  // namespace troika::device::openvino
