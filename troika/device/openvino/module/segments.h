// Segments: a Program cut into runs of operators, each of which is one OpenVINO graph or goes
// through the host's kernels.
#pragma once

#include <vector>

#include "troika/device/device.h"

namespace troika::device::openvino {

// What becomes a graph.
enum class GraphUse {
  kStages,    // all that need not run on the host
  kProducts,  // products only, those of one input as one: for tasks of a row, in which each node of
              // a graph costs more than its arithmetic
};

struct Segment {
  bool on_host = false;
  bool one_product = false;  // GraphUse::kProducts: the operators' outputs side by side
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
Result<std::vector<Segment>> make_segments(const Program& program,
                                           GraphUse use = GraphUse::kStages);

}  // namespace troika::device::openvino
