#include "troika/planner/divider.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "troika/planner/balance.h"

namespace troika::planner {
namespace {

// Quantization blocks are not cut.
constexpr int64_t kBlockInputs = 32;

bool needs_whole_lengths(const cost::DeviceFacts& facts) {
  return !facts.standard_lengths.empty() || facts.row_tile > 1;
}

int64_t tile(const cost::DeviceFacts& facts, OperatorCut kind) {
  switch (kind) {
    case OperatorCut::kK:
      return std::lcm(facts.k_tile, kBlockInputs);
    case OperatorCut::kActivationCentric:
      return 1;
    default:
      return facts.n_tile;
  }
}

}  // namespace

Divider::Size Divider::Units::size(size_t part, int64_t units) const {
  if (grain == 0) {
    const double share = static_cast<double>(units) / static_cast<double>(count);
    return {std::max<int64_t>(1, std::llround(static_cast<double>(extent) * share)), share};
  }
  const int64_t missing = part == ragged ? count * grain - extent : 0;
  const int64_t elements = units * grain - missing;
  return {elements, static_cast<double>(elements) / static_cast<double>(extent)};
}

Slice Divider::slice(OperatorCut kind, size_t device, Size size, double speed) const {
  const cost::Product& product = time_.product();
  Slice slice{device, size.share, product.m, product.n, product.k, 0, false};
  if (kind == OperatorCut::kWeightCentric || kind == OperatorCut::kHybrid) {
    slice.outputs = size.elements;
  } else if (kind == OperatorCut::kK) {
    slice.inputs = size.elements;
  } else if (kind == OperatorCut::kActivationCentric) {
    slice.rows = size.elements;
  }
  const auto time = time_.slice(device, slice.rows, slice.outputs, slice.inputs, speed);
  slice.us = time ? time->us : HUGE_VAL;
  slice.integer = time && time->integer;
  return slice;
}

Division Divider::division(OperatorCut kind, const std::vector<size_t>& set,
                           const std::vector<Size>& sizes) const {
  Division division;
  division.cut = kind;
  division.join_us = time_.join_us() + (kind == OperatorCut::kK ? time_.sum_us(set.size()) : 0);
  const double speed = time_.speed_together(set);
  for (size_t i = 0; i < set.size(); ++i) {
    division.slices.push_back(slice(kind, set[i], sizes[i], speed));
    division.slowest_us = std::max(division.slowest_us, division.slices.back().us);
    if (kind == OperatorCut::kWeightCentric && time_.pads(set[i])) {
      division.cut = OperatorCut::kHybrid;
    }
  }
  return division;
}

Division Divider::alone(size_t device) const {
  const OperatorCut kind = time_.pads(device) ? OperatorCut::kPadding : OperatorCut::kNone;
  Division division;
  division.cut = kind;
  division.slices = {slice(kind, device, {0, 1}, 1)};
  division.slowest_us = division.slices[0].us;
  if (time_.facts(device).only_products) division.join_us = time_.join_us();
  return division;
}

// Of all sets of two and more devices the best; of equal ones the smallest and first.
template <class Solve>
std::optional<Division> Divider::best_of_sets(const Solve& solve) const {
  std::optional<Division> best;
  for (size_t size = 2; size <= devices_.size(); ++size) {
    for (uint32_t mask = 1; mask < 1u << devices_.size(); ++mask) {
      std::vector<size_t> set;
      for (size_t i = 0; i < devices_.size(); ++i) {
        if ((mask >> i & 1) != 0) set.push_back(devices_[i]);
      }
      if (set.size() != size) continue;
      std::optional<Division> own = solve(set);
      if (own && std::isfinite(own->us()) && (!best || own->us() < best->us())) best = own;
    }
  }
  return best;
}

Divider::Units Divider::units(OperatorCut kind, const std::vector<size_t>& set, int64_t grid,
                              int64_t quantum) const {
  const cost::Product& product = time_.product();
  Units units;
  units.extent = kind == OperatorCut::kK                   ? product.k
                 : kind == OperatorCut::kActivationCentric ? product.m
                                                           : product.n;
  if (grid > 0) {
    units.count = std::min(grid, units.extent);
    return units;
  }
  units.grain = std::clamp<int64_t>(quantum, 1, units.extent);
  for (size_t i = 0; i < set.size(); ++i) {
    const int64_t own = tile(time_.facts(set[i]), kind);
    if (own < tile(time_.facts(set[units.ragged]), kind)) units.ragged = i;
    units.grain = std::min(std::lcm(units.grain, own), units.extent);
  }
  units.count = (units.extent + units.grain - 1) / units.grain;
  return units;
}

std::optional<Division> Divider::cut(OperatorCut kind, const std::vector<size_t>& set, int64_t grid,
                                     int64_t quantum) const {
  const Units units = this->units(kind, set, grid, quantum);
  const double speed = time_.speed_together(set);
  const auto solved = balance(set.size(), units.count, [&](size_t part, int64_t n) {
    return slice(kind, set[part], units.size(part, n), speed).us;
  });
  if (!solved) return std::nullopt;
  std::vector<Size> sizes;
  for (size_t i = 0; i < set.size(); ++i) sizes.push_back(units.size(i, solved->units[i]));
  return division(kind, set, sizes);
}

std::optional<Division> Divider::by_outputs(int64_t grid) const {
  return best_of_sets([&](const std::vector<size_t>& set) {
    return cut(OperatorCut::kWeightCentric, set, grid, 0);
  });
}

std::optional<Division> Divider::by_inputs(int64_t grid, int64_t quantum) const {
  return best_of_sets(
      [&](const std::vector<size_t>& set) { return cut(OperatorCut::kK, set, grid, quantum); });
}

// Every way to give whole lengths to the devices that need them, and the rest to the others.
class RowsSearch {
 public:
  RowsSearch(const Divider& divider, const std::vector<size_t>& set)
      : divider_(divider), set_(set), speed_(divider.time_.speed_together(set)), rows_(set.size()) {
    for (size_t i = 0; i < set.size(); ++i) {
      (needs_whole_lengths(divider.time_.facts(set[i])) ? bound_ : free_).push_back(i);
    }
  }

  std::optional<Division> run() {
    assign(0, divider_.time_.product().m, 0);
    if (best_rows_.empty()) return std::nullopt;
    std::vector<Divider::Size> sizes;
    const auto total = static_cast<double>(divider_.time_.product().m);
    for (const int64_t rows : best_rows_)
      sizes.push_back({rows, static_cast<double>(rows) / total});
    return divider_.division(OperatorCut::kActivationCentric, set_, sizes);
  }

 private:
  double time(size_t part, int64_t rows) const {
    return divider_.slice(OperatorCut::kActivationCentric, set_[part], {rows, 0}, speed_).us;
  }

  void assign(size_t next, int64_t rows_left, double slowest_us) {
    if (next == bound_.size()) {
      share_rest(rows_left, slowest_us);
      return;
    }
    const size_t part = bound_[next];
    if (free_.empty() && next + 1 == bound_.size()) {
      rows_[part] = rows_left;
      keep(std::max(slowest_us, time(part, rows_left)));
      return;
    }
    for (const int64_t rows : divider_.time_.whole_lengths(set_[part], rows_left)) {
      const double us = time(part, rows);
      if (us >= best_us_) break;  // longer ones take longer
      rows_[part] = rows;
      assign(next + 1, rows_left - rows, std::max(slowest_us, us));
    }
  }

  void share_rest(int64_t rows_left, double slowest_us) {
    const auto solved = balance(free_.size(), rows_left,
                                [&](size_t part, int64_t rows) { return time(free_[part], rows); });
    if (!solved) return;
    for (size_t i = 0; i < free_.size(); ++i) rows_[free_[i]] = solved->units[i];
    keep(std::max(slowest_us, solved->us));
  }

  void keep(double us) {
    if (us >= best_us_) return;
    best_us_ = us;
    best_rows_ = rows_;
  }

  const Divider& divider_;
  const std::vector<size_t>& set_;
  double speed_;
  std::vector<size_t> bound_;  // parts that need whole lengths
  std::vector<size_t> free_;
  std::vector<int64_t> rows_;  // by part, as assigned so far
  double best_us_ = HUGE_VAL;
  std::vector<int64_t> best_rows_;
};

std::optional<Division> Divider::rows_of(const std::vector<size_t>& set, int64_t grid,
                                         int64_t quantum) const {
  if (time_.product().m < static_cast<int64_t>(set.size())) return std::nullopt;
  const bool any_rows = std::none_of(set.begin(), set.end(), [&](size_t device) {
    return needs_whole_lengths(time_.facts(device));
  });
  if (any_rows || quantum > 0) return cut(OperatorCut::kActivationCentric, set, grid, quantum);
  return RowsSearch(*this, set).run();
}

std::optional<Division> Divider::by_rows(int64_t grid, int64_t quantum) const {
  return best_of_sets([&](const std::vector<size_t>& set) { return rows_of(set, grid, quantum); });
}

}  // namespace troika::planner
