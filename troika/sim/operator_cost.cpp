#include "troika/sim/operator_cost.h"

#include <algorithm>
#include <string_view>

#include "troika/plan/shares.h"

namespace troika::sim {

double stored_bits(double asked, int64_t bytes, int64_t n, int64_t k) {
  if (asked > 0) return asked;
  return 8 * static_cast<double>(bytes) / (static_cast<double>(n) * static_cast<double>(k));
}

int64_t computed_rows(const LoweredOptions& options, size_t device, int64_t rows) {
  if (device >= options.standard_rows.size()) return rows;
  return std::max(rows, plan::padded_rows(rows, options.standard_rows[device]));
}

std::optional<cost::Estimate> product_cost(const cost::CostModel& cost, size_t device, int64_t rows,
                                           int64_t n, int64_t k, double weight_bits,
                                           bool input_stationary) {
  cost::Product product;
  product.m = rows;
  product.weight_stationary = !input_stationary;
  product.n = n;
  product.k = k;
  product.weight_bits = weight_bits;
  for (const std::string_view type : soc::types_near(weight_bits)) {
    product.type = type;
    if (auto estimate = cost.product(device, product)) return estimate;
  }
  return std::nullopt;
}

std::optional<cost::Estimate> attention_cost(const cost::CostModel& cost, size_t device,
                                             int64_t rows, double keys, int64_t width,
                                             int64_t group, double activation_bytes) {
  const auto columns = static_cast<double>(width);
  const double macs = 2 * columns * keys * static_cast<double>(rows);
  // Keys and values once, in 16 bits.
  const double kv_bytes = 2 * 2 * keys * columns / static_cast<double>(group);
  return cost.attention(device, macs, activation_bytes + kv_bytes);
}

void set_overheads(const cost::CostModel& cost, size_t device, Sync sync, Task& task) {
  const bool joins = task.n_waits > 0;
  if (sync == Sync::kQueue) {
    if (joins) task.late_us = static_cast<float>(cost.join_us());
    return;
  }
  if (!joins) {
    task.start_us = static_cast<float>(cost.launch_us(device, false));
    return;
  }
  const double join = sync == Sync::kPredict ? cost.join_us() : cost.blocking_join_us();
  task.start_us = static_cast<float>(join + cost.launch_us(device, true));
}

// By masks of the plan's devices.
std::vector<double> shared_gbps(const cost::CostModel& cost, const std::vector<size_t>& devices) {
  std::vector<double> totals(size_t{1} << devices.size(), 1);
  for (size_t set = 1; set < totals.size(); ++set) {
    uint32_t mask = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      if ((set >> i & 1) != 0) mask |= 1u << devices[i];
    }
    totals[set] = cost.shared_gbps(mask);
  }
  return totals;
}

}  // namespace troika::sim
