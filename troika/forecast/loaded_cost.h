// A chip on which something else runs, too: a game on the GPU, a camera on the NPU.
#pragma once

#include <algorithm>

#include "troika/cost/forwarded_cost.h"

namespace troika::forecast {

struct OtherLoad {
  size_t device = 0;
  double part = 0;  // of the device's time that the load has, below 1
  double gbps = 0;  // of the memory
};

// The costs of a chip under a load. Borrows the model; as safe among threads as that is.
class LoadedCost final : public cost::ForwardedCost {
 public:
  LoadedCost(const cost::CostModel& cost, const OtherLoad& load)
      : ForwardedCost(cost), load_(load) {}

  std::optional<cost::Estimate> product(size_t device,
                                        const cost::Product& product) const override {
    return slowed(device, model().product(device, product));
  }
  std::optional<cost::Estimate> attention(size_t device, double macs, double bytes) const override {
    return slowed(device, model().attention(device, macs, bytes));
  }
  cost::Estimate elementwise(size_t device, double bytes) const override {
    return *slowed(device, model().elementwise(device, bytes));
  }
  // The load's bandwidth is gone first; a tenth is always left.
  double shared_gbps(uint32_t devices) const override {
    const double all = model().shared_gbps(devices);
    return std::max(0.1 * all, all - load_.gbps);
  }

 private:
  std::optional<cost::Estimate> slowed(size_t device, std::optional<cost::Estimate> work) const {
    if (work && device == load_.device) {
      work->compute_us /= 1 - load_.part;
      work->memory_us /= 1 - load_.part;
    }
    return work;
  }

  OtherLoad load_;
};

}  // namespace troika::forecast
