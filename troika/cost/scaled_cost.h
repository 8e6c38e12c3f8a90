// A cost model whose devices have become slower or faster: what is measured corrects what was.
#pragma once

#include <utility>
#include <vector>

#include "troika/cost/forwarded_cost.h"

namespace troika::cost {

// Everything that a device computes takes `factors` times as long, by device; what it reads in a
// second falls accordingly. Launching and joining stay. Borrows the model.
class ScaledCost final : public ForwardedCost {
 public:
  ScaledCost(const CostModel& cost, std::vector<double> factors)
      : ForwardedCost(cost),
        factors_(std::move(factors)),
        facts_(cost.devices().begin(), cost.devices().end()) {
    for (size_t i = 0; i < facts_.size(); ++i) facts_[i].bandwidth_gbps /= factors_[i];
  }

  std::span<const DeviceFacts> devices() const override { return facts_; }
  std::optional<Estimate> product(size_t device, const Product& product) const override {
    return scaled(device, model().product(device, product));
  }
  std::optional<Estimate> attention(size_t device, double macs, double bytes) const override {
    return scaled(device, model().attention(device, macs, bytes));
  }
  Estimate elementwise(size_t device, double bytes) const override {
    return *scaled(device, model().elementwise(device, bytes));
  }

 private:
  std::optional<Estimate> scaled(size_t device, std::optional<Estimate> estimate) const {
    if (!estimate) return estimate;
    estimate->fixed_us *= factors_[device];
    estimate->compute_us *= factors_[device];
    estimate->memory_us *= factors_[device];
    return estimate;
  }

  std::vector<double> factors_;
  std::vector<DeviceFacts> facts_;
};

}  // namespace troika::cost
