// Lowering: from a Plan and a graph to the tasks that devices run and the memory they need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/cut_graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// A place in the activation memory: rows of a tensor from `offset` on. Slots are shared by tensors
// that are never alive together, so all layers use the same ones.
struct Slot {
  int64_t offset = 0;      // bytes; a multiple of 64 unless the tensor is a window of another
  int64_t row_stride = 0;  // bytes
};

struct MemoryPlan {
  std::vector<Slot> slots;  // by tensor of the cut graph
  int64_t bytes = 0;
};

// A piece of work for one device, in the order in which it is queued there.
struct Task {
  std::string name;    // "G1 layer 3"; of joined chunks "G1 layer 3 chunks 0-1"
  int32_t device = 0;  // index into Plan::devices
  graph::Stage stage = graph::Stage::kInput;
  int32_t layer = -1;
  int32_t block = kWholePass;  // the rows that it works on
  device::Program program;
  std::vector<int32_t> waits;  // earlier tasks on other devices
  Duration delay{};            // a planned pause before it
  // Multiply-adds and bytes: fixed part, and part for every row.
  int64_t weight_bytes = 0;
  int64_t macs_per_row = 0;
  int64_t activation_bytes_per_row = 0;
  int64_t macs_per_key = 0;        // attention: for every key that a row sees
  int64_t join_bytes_per_row = 0;  // of concatenations, which exist only because of the cuts
};

struct TaskList {
  std::unique_ptr<CutGraph> cut;  // what the programs refer to
  std::vector<Task> tasks;
  MemoryPlan memory;
  int64_t rows = 0;
  // The tasks hold for any number of rows up to `rows`; else for exactly that.
  bool any_rows = false;
};

// Places every tensor of a cut graph; tensors whose tasks are ordered one after the other by
// `tasks` may share memory. `logit_rows` is how many rows a tensor of wanted rows has.
MemoryPlan plan_memory(const CutGraph& cut, std::span<const Task> tasks, int64_t logit_rows);

// The tasks of a pass of `rows` rows. The plan must have passed check(); `infos` are the facts of
// Plan::devices, in that order. kUnsupported: rows that a device cannot have, or too many tasks.
Result<TaskList> lower(const Plan& plan, const RowsBucket& bucket, const graph::Graph& graph,
                       int64_t rows, int64_t max_logit_rows,
                       std::span<const device::DeviceInfo> infos);

}  // namespace troika::plan
