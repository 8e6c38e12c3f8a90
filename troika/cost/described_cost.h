// The costs of a chip that is described, not here. docs/planning.md has the formulas.
#pragma once

#include <vector>

#include "troika/cost/cost_model.h"
#include "troika/soc/bandwidth.h"
#include "troika/soc/soc.h"

namespace troika::cost {

// Device i is unit i of the description. Does not change once made; any thread may ask.
class DescribedCost final : public CostModel {
 public:
  explicit DescribedCost(soc::Soc soc);

  std::span<const DeviceFacts> devices() const override { return facts_; }
  std::optional<Estimate> product(size_t device, const Product& product) const override {
    return soc::product_work(soc_.units[device], product);
  }
  std::optional<Estimate> attention(size_t device, double macs, double bytes) const override {
    return soc::attention_work(soc_.units[device], macs, bytes);
  }
  Estimate elementwise(size_t device, double bytes) const override {
    return soc::elementwise_work(soc_.units[device], bytes);
  }
  double shared_gbps(uint32_t devices) const override { return shared_.total(devices); }
  double join_us() const override { return soc_.sync.fast; }
  double blocking_join_us() const override { return soc_.sync.blocking; }
  double launch_us(size_t device, bool drained) const override;
  double build_us(size_t device, int64_t rows) const override {
    return soc::build_us(soc_.units[device], rows);
  }
  RunFacts run_facts(size_t device) const override;
  ChipFacts chip_facts() const override;

  const soc::Soc& soc() const { return soc_; }

 private:
  soc::Soc soc_;
  soc::SharedBandwidth shared_;
  std::vector<DeviceFacts> facts_;
};

}  // namespace troika::cost
