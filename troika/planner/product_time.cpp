#include "troika/planner/product_time.h"

#include <algorithm>
#include <cmath>

namespace troika::planner {

std::optional<cost::Estimate> ProductTime::estimate(size_t device, int64_t m, int64_t n,
                                                    int64_t k) const {
  cost::Product product = product_;
  product.m = m;
  product.n = n;
  product.k = k;
  product.weight_stationary = false;
  auto best = cost_.product(device, product);
  product.weight_stationary = true;
  const auto other = cost_.product(device, product);
  if (!best || (other && other->work_us() < best->work_us())) best = other;
  return best;
}

// The lengths in which the device computes `m` rows, one after the other.
std::vector<int64_t> ProductTime::pieces(size_t device, int64_t m) const {
  const std::vector<int64_t>& lengths = facts(device).standard_lengths;
  if (lengths.empty() || m == 1 || rows_ == Rows::kTile || rows_ == Rows::kBuilt) return {m};
  std::vector<int64_t> pieces;
  while (m > 0) {
    int64_t next = 0;
    if (rows_ == Rows::kStandard) {
      const auto fit = std::lower_bound(lengths.begin(), lengths.end(), m);
      next = fit == lengths.end() ? lengths.back() : *fit;
    } else {
      // The longest that is filled; the shortest for what remains.
      const auto above = std::upper_bound(lengths.begin(), lengths.end(), m);
      next = above == lengths.begin() ? lengths.front() : *(above - 1);
    }
    pieces.push_back(next);
    m -= next;
  }
  return pieces;
}

std::optional<SliceTime> ProductTime::slice(size_t device, int64_t m, int64_t n, int64_t k,
                                            double speed) const {
  SliceTime time;
  for (const int64_t rows : pieces(device, m)) {
    const auto part = estimate(device, rows, n, k);
    if (!part) return std::nullopt;
    time.us += part->fixed_us + part->work_us() / speed;
    time.integer = time.integer || part->integer;
  }
  if (rows_ == Rows::kBuilt) time.us += cost_.build_us(device, m);
  return time;
}

double ProductTime::speed_together(const std::vector<size_t>& devices) const {
  uint32_t mask = 0;
  double demand = 0;
  for (const size_t device : devices) {
    mask |= 1u << device;
    const auto whole_product = estimate(device, product_.m, product_.n, product_.k);
    if (whole_product) demand += whole_product->demand_gbps();
  }
  return cost_.speed_together(mask, demand);
}

bool ProductTime::pads(size_t device) const {
  if (product_.m == 1 || rows_ == Rows::kBuilt) return false;
  int64_t rows = 0;
  for (const int64_t piece : pieces(device, product_.m)) rows += piece;
  return rows != product_.m || product_.m % facts(device).row_tile != 0;
}

std::vector<int64_t> ProductTime::whole_lengths(size_t device, int64_t rows) const {
  const cost::DeviceFacts& own = facts(device);
  std::vector<int64_t> lengths;
  if (own.standard_lengths.empty()) {
    if (own.row_tile == 1) return lengths;
    for (int64_t length = own.row_tile; length < rows; length += own.row_tile) {
      lengths.push_back(length);
    }
    return lengths;
  }
  const int64_t longest = own.standard_lengths.back();
  for (int64_t whole = 0; whole < rows; whole += longest) {
    if (whole > 0) lengths.push_back(whole);
    for (const int64_t length : own.standard_lengths) {
      if (length < longest && whole + length < rows) lengths.push_back(whole + length);
    }
  }
  return lengths;
}

double ProductTime::sum_us(size_t parts) const {
  constexpr double kPartialSumBytes = 4;
  const double bytes = kPartialSumBytes * static_cast<double>(parts + 1) *
                       static_cast<double>(product_.m) * static_cast<double>(product_.n);
  double whole = HUGE_VAL;  // by a device that does more than products
  double any = HUGE_VAL;
  for (size_t i = 0; i < cost_.devices().size(); ++i) {
    const double us = cost_.elementwise(i, bytes).work_us();
    any = std::min(any, us);
    if (!facts(i).only_products) whole = std::min(whole, us);
  }
  return whole == HUGE_VAL ? any : whole;
}

}  // namespace troika::planner
