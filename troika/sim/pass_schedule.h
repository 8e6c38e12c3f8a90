// The schedule of a bucket of a plan straight from the graph and a cost model, for a search that
// tries thousands of buckets a second: what schedule_from(plan::lower(...)) gives, without programs
// for devices, names and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/base/trace.h"
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

// What a task of a pass works on and moves, for a trace.
struct TaskFacts {
  int64_t row_begin = 0;
  int64_t rows = 0;
  double bytes = 0;       // weights once, and what each operator reads and writes
  double copy_bytes = 0;  // of concatenations
  double macs = 0;
};

struct PassSchedule {
  Schedule schedule;
  std::vector<TaskPlace> places;  // by task; see add_places()
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
  // cannot have. `out` keeps its memory from one call to the next, and gets no places.
  Status build(const plan::RowsBucket& bucket, int64_t rows, PassSchedule& out);
  // The places of the pass that was built last, which is `out`'s.
  void add_places(PassSchedule& out) const;
  // Of the slices of weights that each device reads in the pass that was built last, each slice
  // once; empty if that pass had to be lowered.
  std::vector<double> weight_bytes() const;
  // By task of the pass that was built last, of `rows` rows; empty if it had to be lowered.
  std::vector<TaskFacts> task_facts(int64_t rows) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One pass with its places, and the times of a run; `names` by device. Chunks are told apart if
// there are several.
Trace trace_of(const PassSchedule& pass, std::span<const TaskFacts> facts,
               std::span<const TaskTimes> times, std::span<const std::string> names);

}  // namespace troika::sim
