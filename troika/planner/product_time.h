// What slices of one product cost on the devices of a cost model, alone and together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "troika/cost/cost_model.h"
#include "troika/planner/strategy.h"

namespace troika::planner {

struct SliceTime {
  double us = 0;
  bool integer = false;
};

// Borrows the cost model.
class ProductTime {
 public:
  ProductTime(const cost::CostModel& cost, const cost::Product& product, Rows rows)
      : cost_(cost), product_(product), rows_(rows) {}

  const cost::Product& product() const { return product_; }
  const cost::DeviceFacts& facts(size_t device) const { return cost_.devices()[device]; }

  // Of `m` rows, `n` outputs and `k` inputs of the product, in the better order of operands, while
  // the device keeps `speed` of its speed. nullopt if it cannot have them.
  std::optional<SliceTime> slice(size_t device, int64_t m, int64_t n, int64_t k,
                                 double speed = 1) const;
  // The whole product.
  std::optional<SliceTime> whole(size_t device) const {
    return slice(device, product_.m, product_.n, product_.k);
  }
  // The speed that each of these devices keeps when all compute slices of the product.
  double speed_together(const std::vector<size_t>& devices) const;

  // Whether the device computes more rows than there are; a single row is never called padded.
  bool pads(size_t device) const;
  // Rows of an activation-centric slice that the device has without padding, ascending, below
  // `rows`: multiples of its longest length and at most one other length, or multiples of its tile.
  // Empty if it has any.
  std::vector<int64_t> whole_lengths(size_t device, int64_t rows) const;
  // Added where partial sums of `parts` devices become one.
  double sum_us(size_t parts) const;
  double join_us() const { return cost_.join_us(); }

 private:
  std::optional<cost::Estimate> estimate(size_t device, int64_t m, int64_t n, int64_t k) const;
  std::vector<int64_t> pieces(size_t device, int64_t m) const;

  const cost::CostModel& cost_;
  cost::Product product_;
  Rows rows_;
};

}  // namespace troika::planner
