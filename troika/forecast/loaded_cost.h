// A chip on which something else runs, too: a game on the GPU, a camera on the NPU.
#pragma once

#include <algorithm>

#include "troika/cost/cost_model.h"

namespace troika::forecast {

struct OtherLoad {
  size_t device = 0;
  double part = 0;  // of the device's time that the load has, below 1
  double gbps = 0;  // of the memory
};

// The costs of a chip under a load. Borrows the model; as safe among threads as that is.
class LoadedCost final : public cost::CostModel {
 public:
  LoadedCost(const cost::CostModel& cost, const OtherLoad& load) : cost_(cost), load_(load) {}

  std::span<const cost::DeviceFacts> devices() const override { return cost_.devices(); }
  std::optional<cost::Estimate> product(size_t device,
                                        const cost::Product& product) const override {
    return slowed(device, cost_.product(device, product));
  }
  std::optional<cost::Estimate> attention(size_t device, double macs, double bytes) const override {
    return slowed(device, cost_.attention(device, macs, bytes));
  }
  cost::Estimate elementwise(size_t device, double bytes) const override {
    return *slowed(device, cost_.elementwise(device, bytes));
  }
  // The load's bandwidth is gone first; a tenth is always left.
  double shared_gbps(uint32_t devices) const override {
    const double all = cost_.shared_gbps(devices);
    return std::max(0.1 * all, all - load_.gbps);
  }
  double join_us() const override { return cost_.join_us(); }
  double blocking_join_us() const override { return cost_.blocking_join_us(); }
  double launch_us(size_t device, bool drained) const override {
    return cost_.launch_us(device, drained);
  }
  double build_us(size_t device, int64_t rows) const override {
    return cost_.build_us(device, rows);
  }
  cost::RunFacts run_facts(size_t device) const override { return cost_.run_facts(device); }
  cost::ChipFacts chip_facts() const override { return cost_.chip_facts(); }

 private:
  std::optional<cost::Estimate> slowed(size_t device, std::optional<cost::Estimate> work) const {
    if (work && device == load_.device) {
      work->compute_us /= 1 - load_.part;
      work->memory_us /= 1 - load_.part;
    }
    return work;
  }

  const cost::CostModel& cost_;
  OtherLoad load_;
};

}  // namespace troika::forecast
