// A cost model that is another one but for what a class derived from it changes.
#pragma once

#include "troika/cost/cost_model.h"

namespace troika::cost {

// Borrows the model; as safe among threads as that is.
class ForwardedCost : public CostModel {
 public:
  explicit ForwardedCost(const CostModel& cost) : cost_(cost) {}

  std::span<const DeviceFacts> devices() const override { return cost_.devices(); }
  std::optional<Estimate> product(size_t device, const Product& product) const override {
    return cost_.product(device, product);
  }
  std::optional<Estimate> attention(size_t device, double macs, double bytes) const override {
    return cost_.attention(device, macs, bytes);
  }
  Estimate elementwise(size_t device, double bytes) const override {
    return cost_.elementwise(device, bytes);
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

 protected:
  const CostModel& model() const { return cost_; }

 private:
  const CostModel& cost_;
};

}  // namespace troika::cost
