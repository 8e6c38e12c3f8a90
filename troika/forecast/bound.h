// The least time that a chip could need for a prefill: what every plan is held against.
//
// All work of the pass, attention and norms included, with each operator freely divided among the
// devices that support it, at the speed that each has alone and keeps beside the others; the memory
// at what the set of devices reaches; no launches, joins, padding or dependencies. Uses neither
// planner nor simulator: docs/simulator.md has the formulas.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/cost/cost_model.h"
#include "troika/graph/graph.h"

namespace troika::forecast {

// An operator: microseconds that each device would need for all of it beside the others; HUGE_VAL:
// it has it not.
struct DividedWork {
  std::vector<double> us;
  // The same of the fastest one while the others do nothing.
  double alone_us = HUGE_VAL;
};

// The least T such that each operator's parts sum to 1 and no device works longer than T beside the
// others, where T is what they work together and what some device works alone. By duality, the
// greatest over prices p (at least 0, of sum 1) of the sum over operators of the least of alone_us
// and all p_d us_d; found to about 1e-6. HUGE_VAL if some operator cannot be had.
double least_makespan_us(std::span<const DividedWork> works);

struct PrefillWork {
  int64_t rows = 1;
  int64_t depth = 0;  // tokens before the pass
  int64_t logit_rows = 1;
  double weight_bits = 0;            // stored for each weight; 0: as in the model's file
  double head_bits = 0;              // the same of the head; 0: as of the others
  double activation_bits = 0;        // of each element; 0: as in the graph
  bool integer_activations = false;  // devices may round activations
};

struct Bound {
  double us = 0;
  double devices_us = 0;        // of the best set of devices, at its clocks
  double memory_us = 0;         // its bytes at what the set reaches
  std::vector<size_t> devices;  // the set
};

// The least over sets of devices of max(devices_us, memory_us). While the chip's turbo lasts, which
// it does no longer than if all of the set worked all the time, devices_us is at turbo clocks.
// kUnsupported if no set has all operators.
Result<Bound> prefill_bound(const graph::Graph& graph, const cost::CostModel& cost,
                            const PrefillWork& work);

}  // namespace troika::forecast
