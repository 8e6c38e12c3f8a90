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
// Launch and join of a task that has its waits.
void set_overheads(const cost::CostModel& cost, size_t device, Sync sync, Task& task);
// By masks of the plan's devices, each of which is one of the cost model's.
std::vector<double> shared_gbps(const cost::CostModel& cost, const std::vector<size_t>& devices);

}  // namespace troika::sim
