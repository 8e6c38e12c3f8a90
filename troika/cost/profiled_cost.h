// The costs of a machine that was measured: a CostModel from a profile. docs/profiling.md tells how
// points become laws.
#pragma once

#include <utility>
#include <vector>

#include "troika/cost/cost_model.h"
#include "troika/profile/record/product_law.h"
#include "troika/profile/record/profile.h"

namespace troika::cost {

// Device i is device i of the profile. Does not change once made; any thread may ask.
class ProfiledCost final : public CostModel {
 public:
  // kInvalidData naming a device of which no product was measured.
  static Result<ProfiledCost> create(profile::Profile profile);

  std::span<const DeviceFacts> devices() const override { return facts_; }
  // `fixed_us` is what a task costs besides its operators; `compute_us` is the measured time, which
  // holds the memory's.
  std::optional<Estimate> product(size_t device, const Product& product) const override;
  std::optional<Estimate> attention(size_t device, double macs, double bytes) const override;
  Estimate elementwise(size_t device, double bytes) const override;
  double shared_gbps(uint32_t devices) const override { return shared_[devices]; }
  double join_us() const override { return join_us_; }
  double blocking_join_us() const override { return blocking_join_us_; }
  // A task's own cost is in both.
  double launch_us(size_t device, bool drained) const override;
  double build_us(size_t device, int64_t rows) const override;

  const profile::Profile& profile() const { return profile_; }

 private:
  // us = base + per_unit * x + per_other * y, none of them negative.
  struct Line {
    double base = 0;
    double per_x = 0;
    double per_y = 0;
    bool known = false;
    double of(double x, double y = 0) const { return base + per_x * x + per_y * y; }
  };
  struct Laws {
    profile::ProductLaw products;
    Line attention;            // of multiply-adds and bytes
    Line reading;              // of few rows, which is reading keys and values: of bytes
    double reading_until = 0;  // multiply-adds for a byte
    Line elementwise;          // of bytes
    Line build;                // of rows
    // How much longer products take in a whole layer than by themselves, by rows, ascending.
    std::vector<std::pair<double, double>> in_layers;

    double attention_us(double macs, double bytes) const {
      return (macs <= reading_until * bytes ? reading : attention).of(macs, bytes);
    }
  };
  struct Fit;

  explicit ProfiledCost(profile::Profile profile) : profile_(std::move(profile)) {}
  void learn(const profile::DeviceProfile& device);
  void learn_layers(const profile::DeviceProfile& device, Laws& laws) const;
  void learn_pairs();
  double in_layers(const Laws& laws, double rows) const;

  profile::Profile profile_;
  std::vector<Laws> laws_;
  std::vector<DeviceFacts> facts_;
  std::vector<double> shared_;  // by mask
  double join_us_ = 0;
  double blocking_join_us_ = 0;
};

}  // namespace troika::cost
