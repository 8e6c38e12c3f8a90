// From a graph that knows no devices to one whose every operator is computed by one device on one
// block of rows: products on slices of their weights, attention on some heads, and the joins
// (concatenations, sums of partial products) between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/plan/rows.h"
#include "troika/plan/shares.h"

namespace troika::plan {

// A tensor's or operator's block when it has a row for each wanted logits row of the whole pass.
inline constexpr int32_t kWholePass = -1;

// Who computes an operator.
struct Assignment {
  int32_t device = 0;          // index into Plan::devices
  int32_t block = kWholePass;  // index into CutGraph::blocks
  bool input_stationary = false;
  double delay_us = 0;
  int32_t step = 0;  // of the pass, in which it is queued; the head is the last
};

struct CutGraph {
  // Operators in the order in which they are queued; borrows the model's weights.
  graph::Graph graph;
  std::vector<Assignment> assignments;  // by operator
  std::vector<int32_t> tensor_blocks;   // by tensor
  std::vector<Block> blocks;
  size_t n_worked_on = 0;  // the first blocks; the others only hold memory (RowCut)
  int64_t rows = 0;        // of the pass

  // Rows of the pass that a tensor has, and the row of its memory that its first one is.
  Range rows_of(graph::TensorId tensor) const;
  int64_t row_in_memory(graph::TensorId tensor) const;
};

// `plan` must have passed check(); `infos` in the order of Plan::devices. A pass of `rows` rows;
// logits are wanted for at most `max_logit_rows` of them.
Result<CutGraph> cut(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                     int64_t rows, int64_t max_logit_rows,
                     std::span<const device::DeviceInfo> infos);

}  // namespace troika::plan
