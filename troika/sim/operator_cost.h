// What the operators and joins of a schedule cost: shared by the two ways to make one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troika/cost/cost_model.h"
#include "troika/sim/lowered.h"
#include "troika/sim/simulator.h"

namespace troika::sim {

// Stored for each weight of a matrix of n outputs and k inputs in so many bytes, unless other bits
// are asked for (above 0).
double stored_bits(double asked, int64_t bytes, int64_t n, int64_t k);
// Bits that are asked for in a stage; 0: as in the model's file.
inline double asked_bits(const LoweredOptions& options, graph::Stage stage) {
  const bool head = stage == graph::Stage::kHead && options.head_bits > 0;
  return head ? options.head_bits : options.weight_bits;
}
// Rows that a product of so many computes on a device.
int64_t computed_rows(const LoweredOptions& options, size_t device, int64_t rows);
// Of the type nearest to the weight's bits that the device can have; nullopt if none.
std::optional<cost::Estimate> product_cost(const cost::CostModel& cost, size_t device, int64_t rows,
                                           int64_t n, int64_t k, double weight_bits,
                                           bool input_stationary);
// Of query heads that are `width` wide together, `group` of which share keys; `keys` that a row
// sees in the mean.
std::optional<cost::Estimate> attention_cost(const cost::CostModel& cost, size_t device,
                                             int64_t rows, double keys, int64_t width,
                                             int64_t group, double activation_bytes);
// What one operator or a task needs, each by itself.
struct Needed {
  double work_us = 0;
  double arithmetic_us = 0;  // of it: bound by arithmetic
  double bytes = 0;
  double energy_uj = 0;   // above idle
  int32_t operators = 0;  // added

  void add(const cost::Estimate& estimate, const cost::RunFacts& facts);
  void add(const Needed& other);
};
// A product's place on a device: equal ones need no switch between them.
struct Place {
  int32_t path = -1;   // of the device; -1: no product so far
  int64_t weight = 0;  // any number for each weight
  int64_t n_begin = 0;
  int64_t n = 0;
  int64_t k_begin = 0;
  int64_t k = 0;

  bool same_slice(const Place& other) const {
    return weight == other.weight && n_begin == other.n_begin && n == other.n &&
           k_begin == other.k_begin && k == other.k;
  }
};
// To go from one product to the next one on a device, us.
double switch_us(const cost::RunFacts& facts, const Place& from, const Place& to);
// What a task that has its device, pause and waits needs. `switches_us`: before and in it.
// `joined`: some task of the pass waits for another device.
void set_work(const cost::CostModel& cost, size_t device, Sync sync, const Needed& needed,
              double switches_us, bool joined, Task& task);
// All of a schedule but its tasks and waits. Plan device i is device devices[i] of the cost model.
void set_chip(const cost::CostModel& cost, const std::vector<size_t>& devices, Schedule& schedule);
// By masks of the plan's devices, each of which is one of the cost model's.
std::vector<double> shared_gbps(const cost::CostModel& cost, const std::vector<size_t>& devices);

}  // namespace troika::sim
