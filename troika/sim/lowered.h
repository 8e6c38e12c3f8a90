// From the tasks of a lowered plan and the costs of a chip to a Schedule, and from a simulated run
// to the same Trace that the executor writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/cost/cost_model.h"
#include "troika/plan/lower.h"
#include "troika/sim/simulator.h"

namespace troika::sim {

// How the work of two devices is joined.
enum class Sync {
  kQueue,     // everything is queued ahead; a task that had to wait for another device is late
              // by one fast join
  kPredict,   // the host waits and then submits: a fast join, and a launch to a drained queue
  kBlocking,  // the driver's blocking call, for each operator of a pass in which devices join
};

struct LoweredOptions {
  // By Plan::devices: which device of the cost model it is. Each at most once.
  std::vector<size_t> devices;
  // By Plan::devices: rows for which their kernels exist, to which products are padded; empty
  // lists, or none at all: as many as there are.
  std::vector<std::vector<int64_t>> standard_rows;
  int64_t depth = 0;       // tokens of the sequence before the pass
  int64_t logit_rows = 1;  // rows whose logits are wanted
  Sync sync = Sync::kQueue;
  double weight_bits = 0;      // stored for each weight of a product; 0: as in the model's file
  double head_bits = 0;        // the same of the head; 0: as of the others
  double activation_bits = 0;  // of each element; 0: as in the graph
};

// Task i of the schedule is task i of the list. Products hold the operand in place that the plan
// says. kUnsupported naming a task that its device cannot have.
Result<Schedule> schedule_from(const plan::TaskList& list, const cost::CostModel& cost,
                               const LoweredOptions& options);

// One pass, with the times of a run. `names` by Plan::devices.
Trace trace_of(const plan::TaskList& list, std::span<const TaskTimes> times,
               std::span<const std::string> names, const LoweredOptions& options);

}  // namespace troika::sim
