// ProductLaw: from the products that were measured of a device to those that were not.
//
// Over rows a device is linear between measured points, or a staircase whose steps are its tile or
// its standard lengths: what lies on one step costs the same. Over outputs and inputs it is linear
// between measured ones, after padding to the tiles; a pair of extents that was not measured is the
// product of how either one scales. Never less for more outputs or inputs, where what was measured
// of the most of them counts, nor for more rows from two on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troika/profile/record/profile.h"

namespace troika::profile {

// How a device pads rows, outputs and inputs.
struct Padding {
  std::vector<int64_t> standard_rows;  // empty: any multiple of row_tile
  int64_t row_tile = 1;
  int64_t n_tile = 1;
  int64_t k_tile = 1;

  static Padding of(const DeviceProfile& device);
  int64_t rows(int64_t rows) const;
  int64_t outputs(int64_t n) const { return (n + n_tile - 1) / n_tile * n_tile; }
  int64_t inputs(int64_t k) const { return (k + k_tile - 1) / k_tile * k_tile; }
};

// Does not change once made; any thread may ask.
class ProductLaw {
 public:
  // Deterministic: the order of the points makes no difference.
  ProductLaw(std::span<const ProductPoint> points, Padding padding);

  // Of the stored type that is nearest; nullopt if no product was measured. Extents from 1 to
  // kMaxExtent. An order that was not measured is answered by the other one.
  std::optional<double> us(double weight_bits, int64_t rows, int64_t n, int64_t k,
                           Order order = Order::kWeightInPlace) const;
  const Padding& padding() const { return padding_; }

 private:
  // Times by [rows][n][k] for one type and order.
  struct Table {
    double weight_bits = 0;
    Order order = Order::kWeightInPlace;
    std::vector<double> rows, ns, ks;
    std::vector<double> us;

    double& at(size_t r, size_t n, size_t k) { return us[(r * ns.size() + n) * ks.size() + k]; }
    double at(size_t r, size_t n, size_t k) const {
      return us[(r * ns.size() + n) * ks.size() + k];
    }
    double of(double at_rows, double n, double k) const;
  };

  Table make_table(const std::vector<const ProductPoint*>& points) const;
  const Table* table(double weight_bits, Order order) const;

  Padding padding_;
  std::vector<Table> tables_;
};

}  // namespace troika::profile
