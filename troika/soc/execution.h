// What a unit takes for a piece of work by its execution law. docs/planning.md has the formulas.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "troika/soc/soc.h"

namespace troika::soc {

// y[m,n] = x[m,k] W[n,k]^T, or a slice of one.
struct Product {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  std::string_view type = "w4a16";
  double weight_bits = 4;  // stored for each weight, scales included
  // Which operand stays in place while the other streams past it, on units that can choose.
  bool weight_stationary = false;

  double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// What a unit needs for a piece of work when nobody else uses the memory.
struct Work {
  double fixed_us = 0;     // on top if the work runs by itself
  double overhead_us = 0;  // on top in any case
  double compute_us = 0;   // by arithmetic and by taking weights in
  double memory_us = 0;    // by moving `bytes` at the unit's own bandwidth
  double bytes = 0;
  bool integer = false;   // activations are rounded to integers
  bool takes_in = false;  // compute_us is that of taking weights in: arithmetic waits, too
  int32_t path = -1;      // of the unit that a product takes; -1: no product

  bool memory_bound() const { return takes_in || memory_us >= compute_us; }
  double work_us() const { return overhead_us + std::max(compute_us, memory_us); }
  // What it draws from the memory while it works.
  double demand_gbps() const { return work_us() > 0 ? bytes / work_us() * 1e-3 : 0; }
};

// The multiples that a unit computes: rows, outputs and inputs are padded to them.
struct Tiles {
  int64_t rows = 1;
  int64_t outputs = 1;
  int64_t inputs = 1;
};
Tiles tiles_of(const Unit& unit);

// nullopt if no path of the unit serves the product's type and rows. `fixed_us` is Path::alone.
std::optional<Work> product_work(const Unit& unit, const Product& product);
// Types by how near their weights are to stored ones of so many bits, nearest first.
std::array<std::string_view, 3> types_near(double weight_bits);
// The same for the nearest type that a path serves: weights are unpacked to what a unit computes.
std::optional<Work> stored_product_work(const Unit& unit, const Product& product);
// nullopt if the unit has no attention.
std::optional<Work> attention_work(const Unit& unit, double macs, double bytes);
// Work that only moves bytes: norms, sums, copies. Bytes that it needs at least.
Work elementwise_work(const Unit& unit, double bytes);
// To build a graph for so many rows, us; 0 where none is needed.
double build_us(const Unit& unit, int64_t rows);

}  // namespace troika::soc
