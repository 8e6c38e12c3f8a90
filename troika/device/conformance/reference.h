// The reference: every operator in plain double arithmetic, as graph.h defines it. No speed, no
// tricks, nothing shared with a device.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/device/conformance/problem.h"

namespace troika::device::conformance {

// The tensors of a graph, `rows` rows each; windows are columns of another tensor's memory here
// too.
class Values {
 public:
  Values(const graph::Graph& graph, int64_t rows);
  double* row(graph::TensorId tensor, int64_t index);

 private:
  const graph::Graph& graph_;
  std::vector<std::vector<double>> memory_;  // by tensor; empty for windows
};

// One operator for a batch. Reads and writes `values` and, for KV operators, `kv`; what is stored
// there is rounded to the cache's type.
void compute(const graph::Graph& graph, graph::OpId op, const BatchView& batch, Values& values,
             KvCells& kv);

// Rows of its output that an operator writes: [begin, end).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};
RowRange rows_written(const graph::Graph& graph, graph::OpId op, const BatchView& batch);

}  // namespace troika::device::conformance
