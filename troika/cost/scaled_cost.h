// A cost model whose devices have become slower or faster: what is measured corrects what was.
#pragma once

#include <utility>
#include <vector>

#include "troika/cost/cost_model.h"

namespace troika::cost {

// Everything that a device computes takes `factors` times as long, by device; what it reads in a
// second falls accordingly. Launching and joining stay. Borrows the model.
class ScaledCost final : public CostModel {
 public:
  ScaledCost(const CostModel& cost, std::vector<double> factors)
      : cost_(cost),
        factors_(std::move(factors)),
        facts_(cost.devices().begin(), cost.devices().end()) {
    for (size_t i = 0; i < facts_.size(); ++i) facts_[i].bandwidth_gbps /= factors_[i];
  }

  std::span<const DeviceFacts> devices() const override { return facts_; }
  std::optional<Estimate> product(size_t device, const Product& product) const override {
    return scaled(device, cost_.product(device, product));
  }
  std::optional<Estimate> attention(size_t device, double macs, double bytes) const override {
    return scaled(device, cost_.attention(device, macs, bytes));
  }
  Estimate elementwise(size_t device, double bytes) const override {
    return *scaled(device, cost_.elementwise(device, bytes));
  }
  double shared_gbps(uint32_t devices) const override { return cost_.shared_gbps(devices); }
  double join_us() const override { return cost_.join_us(); }
  double blocking_join_us() const override { return cost_.blocking_join_us(); }
  double launch_us(size_t device, bool drained) const override {
    return cost_.launch_us(device, drained);
  }
  double build_us(size_t device, int64_t rows) const override {
    return cost_.build_us(device, rows);
  }
  RunFacts run_facts(size_t device) const override { return cost_.run_facts(device); }
  ChipFacts chip_facts() const override { return cost_.chip_facts(); }

 private:
  std::optional<Estimate> scaled(size_t device, std::optional<Estimate> estimate) const {
    if (!estimate) return estimate;
    estimate->fixed_us *= factors_[device];
    estimate->compute_us *= factors_[device];
    estimate->memory_us *= factors_[device];
    return estimate;
  }

  const CostModel& cost_;
  std::vector<double> factors_;
  std::vector<DeviceFacts> facts_;
};

}  // namespace troika::cost
