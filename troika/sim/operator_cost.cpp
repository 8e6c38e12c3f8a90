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

void Needed::add(const cost::Estimate& estimate, const cost::RunFacts& facts) {
  work_us += estimate.work_us();
  if (!estimate.memory_bound()) arithmetic_us += estimate.compute_us;
  bytes += estimate.bytes;
  energy_uj += estimate.work_us() * facts.active_w(estimate.memory_bound());
  ++operators;
}

void Needed::add(const Needed& other) {
  work_us += other.work_us;
  arithmetic_us += other.arithmetic_us;
  bytes += other.bytes;
  energy_uj += other.energy_uj;
  operators += other.operators;
}

double switch_us(const cost::RunFacts& facts, const Place& from, const Place& to) {
  if (from.path < 0) return 0;
  if (from.path != to.path) return facts.datapath_switch_us;
  return from.same_slice(to) ? 0 : facts.weights_switch_us;
}

void set_work(const cost::CostModel& cost, size_t device, Sync sync, const Needed& needed,
              double switches_us, bool joined, Task& task) {
  const cost::RunFacts facts = cost.run_facts(device);
  const double work_us = needed.work_us;
  task.work_us = static_cast<float>(work_us);
  if (work_us > 0) {
    task.demand_gbps = static_cast<float>(needed.bytes / work_us * 1e-3);
    task.arithmetic = static_cast<float>(std::min(1.0, needed.arithmetic_us / work_us));
    task.active_w = static_cast<float>(needed.energy_uj / work_us);
  }
  const bool joins = task.n_waits > 0;
  double start_us = switches_us;
  double late_us = 0;
  if (sync == Sync::kQueue) {
    if (joins) late_us += cost.join_us();
    // What cannot be submitted ahead is submitted when its turn comes.
    if (facts.queue_depth == 1) start_us += cost.launch_us(device, true);
  } else if (sync == Sync::kBlocking && joined) {
    // Who cannot wait for a flag waits for each operator: about 17 calls for a layer in HeteroInfer
    // (SOSP '25).
    start_us += cost.blocking_join_us() * std::max(1, needed.operators);
    start_us += cost.launch_us(device, true);
  } else if (!joins) {
    start_us += cost.launch_us(device, facts.queue_depth == 1);
  } else {
    start_us += cost.join_us() + cost.launch_us(device, true);
  }
  task.start_us = static_cast<float>(start_us);
  task.late_us = static_cast<float>(late_us);
}

void set_chip(const cost::CostModel& cost, const std::vector<size_t>& devices, Schedule& schedule) {
  schedule.n_devices = devices.size();
  schedule.shared_gbps = shared_gbps(cost, devices);
  schedule.runs.clear();
  for (const size_t device : devices) {
    const cost::RunFacts facts = cost.run_facts(device);
    schedule.runs.push_back({facts.speed_among_others, facts.turbo_speed, facts.turbo_power,
                             facts.waiting_w, facts.drained_stall});
  }
  schedule.idle_w = cost.chip_facts().idle_w;
  schedule.turbo_mj = cost.chip_facts().turbo_mj;
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
