// Lowering: from a Plan and a graph to the tasks that devices run and the memory they need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// A place in the activation memory: rows of `width` elements from `offset` on. Slots are shared by
// tensors that are never alive together, so all layers use the same ones.
struct Slot {
  int64_t offset = 0;  // bytes, a multiple of 64
  int64_t row_stride = 0;
};

struct MemoryPlan {
  std::vector<Slot> slots;  // by tensor
  int64_t bytes = 0;
};

// A piece of work for one device, in the order in which it is queued there.
struct Task {
  std::string name;    // "G1 layer 3"
  int32_t device = 0;  // index into Plan::devices
  graph::Stage stage = graph::Stage::kInput;
  int32_t layer = -1;
  device::Program program;
  std::vector<int32_t> waits;  // earlier tasks on other devices
  // Multiply-adds and bytes: fixed part, and part for every row.
  int64_t weight_bytes = 0;
  int64_t macs_per_row = 0;
  int64_t activation_bytes_per_row = 0;
  int64_t macs_per_key = 0;  // Attention: for every key that a row sees
};

struct TaskList {
  std::vector<Task> tasks;
  MemoryPlan memory;
};

// Places every tensor for passes of up to `max_rows` rows, `max_logit_rows` of which want logits.
MemoryPlan plan_memory(const graph::Graph& graph, int64_t max_rows, int64_t max_logit_rows);

// The tasks of one bucket. The plan must have passed check().
Result<TaskList> lower(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                       int64_t max_logit_rows);

}  // namespace troika::plan
