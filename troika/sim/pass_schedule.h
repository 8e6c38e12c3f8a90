// The schedule of a bucket of a plan straight from the graph and a cost model, for a search that
// tries thousands of buckets a second: what schedule_from(plan::lower(...)) gives, without programs
// for devices, names and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "troika/base/result.h"
#include "troika/cost/cost_model.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/sim/lowered.h"
#include "troika/sim/simulator.h"

namespace troika::sim {

// What a task belongs to.
struct TaskPlace {
  graph::Stage stage = graph::Stage::kInput;
  int32_t layer = -1;
  int32_t chunk = 0;  // the first, where chunks join
};

struct PassSchedule {
  Schedule schedule;
  std::vector<TaskPlace> places;  // by task
};

// Borrows the graph and the cost model. Not shared between threads.
class PassScheduler {
 public:
  // `infos` in the order of the cost model's devices, which the plan names; `options.devices` is
  // not asked.
  PassScheduler(const graph::Graph& graph, const cost::CostModel& cost,
                std::vector<device::DeviceInfo> infos, LoweredOptions options);
  ~PassScheduler();

  // A pass of `rows` rows by a bucket that passes plan::check(). kUnsupported naming what a device
  // cannot have. `out` keeps its memory from one call to the next.
  Status build(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troika::sim
