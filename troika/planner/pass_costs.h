// A cost model as a pass sees it: operators in a chain, on the paths that a request allows, and the
// devices' facts as lowering wants them.
#pragma once

#include <vector>

#include "troika/cost/forwarded_cost.h"
#include "troika/device/device.h"
#include "troika/planner/model_plan.h"

namespace troika::planner {

// The same costs without what an operator pays for running by itself, and without products that
// round activations unless that is allowed. Borrows the model.
class ChainCost final : public cost::ForwardedCost {
 public:
  // `weight_stays`: static devices hold the weight in place, whatever is asked for.
  ChainCost(const cost::CostModel& cost, bool integer_activations, bool weight_stays = false)
      : ForwardedCost(cost), integers_(integer_activations), weight_stays_(weight_stays) {}

  // Products and attention cannot be had on this device.
  void leave_out(size_t device) { left_out_ |= 1u << device; }
  bool has_left_out(size_t device) const { return (left_out_ >> device & 1) != 0; }

  std::optional<cost::Estimate> product(size_t device,
                                        const cost::Product& product) const override {
    if (has_left_out(device)) return std::nullopt;
    cost::Product own = product;
    own.weight_stationary = own.weight_stationary || weight_stays_;
    auto estimate = model().product(device, own);
    if (estimate && estimate->integer && !integers_) return std::nullopt;
    if (estimate) estimate->fixed_us = 0;
    return estimate;
  }
  std::optional<cost::Estimate> attention(size_t device, double macs, double bytes) const override {
    if (has_left_out(device)) return std::nullopt;
    return model().attention(device, macs, bytes);
  }

 private:
  bool integers_;
  bool weight_stays_;
  uint32_t left_out_ = 0;
};

// Whether its power is known while it works.
bool has_power(const cost::CostModel& cost, size_t device);

// The request's, or by the facts of the cost model: static devices take rows for which they have
// graphs, and one row if they compute that; what they write is contiguous.
std::vector<device::DeviceInfo> infos_for(const cost::CostModel& cost, const PassRequest& request);

// What the simulator is to know of a request, for a plan that names all devices of the cost model.
sim::LoweredOptions lowered_options(const PassRequest& request,
                                    const std::vector<device::DeviceInfo>& infos);
// The noise of one of the seeds of the request's variation.
sim::Noise variation_noise(const PassRequest& request, int32_t seed);
// Fills mean_us and p90_us from one time or more.
Forecast mean_and_p90(std::vector<double>& times);

}  // namespace troika::planner
