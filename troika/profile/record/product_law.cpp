#include "troika/profile/record/product_law.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace troika::profile {
namespace {

using Curve = std::map<double, double>;   // us by rows
using Shape = std::pair<double, double>;  // n, k
using Curves = std::map<Shape, Curve>;

// Weights of a file and of a plan have the same bits up to rounding.
constexpr double kSameBits = 0.01;

// Averages neighbours that fall, so that nothing costs less for more. One row may have a way of its
// own on a device, slower than that for several.
void make_rising(Curve& curve) {
  struct Pool {
    double sum = 0;
    int count = 0;
    double mean() const { return sum / count; }
  };
  std::vector<Pool> pools;
  for (const auto& [rows, us] : curve) {
    if (rows == 1) continue;
    pools.push_back({us, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  auto at = curve.upper_bound(1);
  for (const Pool& pool : pools) {
    for (int i = 0; i < pool.count; ++i) (at++)->second = pool.mean();
  }
}

// Between points by the logarithm of the rows, beyond them as at the ends.
double ratio_at(const Curve& curve, const Curve& main, double rows) {
  std::vector<std::pair<double, double>> ratios;
  for (const auto& [at, us] : curve) {
    const auto found = main.find(at);
    if (found != main.end() && found->second > 0) ratios.emplace_back(at, us / found->second);
  }
  if (ratios.empty()) return 0;
  if (rows <= ratios.front().first) return ratios.front().second;
  for (size_t i = 1; i < ratios.size(); ++i) {
    if (rows > ratios[i].first) continue;
    const auto& [below, low] = ratios[i - 1];
    const auto& [above, high] = ratios[i];
    return low + (high - low) * std::log(rows / below) / std::log(above / below);
  }
  return ratios.back().second;
}

double distance(const Shape& a, const Shape& b) {
  return std::abs(std::log(a.first / b.first)) + std::abs(std::log(a.second / b.second));
}

// A cell that was not measured: how n scales at a measured k, times how k scales at a measured n;
// of all ways to put that together the nearest one.
double filled(const std::map<Shape, double>& known, const Shape& wanted) {
  double best = HUGE_VAL;
  double us = 0;
  for (const auto& [corner, corner_us] : known) {
    const auto along_n = known.find({wanted.first, corner.second});
    const auto along_k = known.find({corner.first, wanted.second});
    if (along_n == known.end() || along_k == known.end() || corner_us <= 0) continue;
    if (distance(corner, wanted) >= best) continue;
    best = distance(corner, wanted);
    us = along_n->second * along_k->second / corner_us;
  }
  if (best < HUGE_VAL) return us;
  for (const auto& [shape, shape_us] : known) {
    if (distance(shape, wanted) >= best) continue;
    best = distance(shape, wanted);
    us = shape_us * wanted.first * wanted.second / (shape.first * shape.second);
  }
  return us;
}

// Where a value lies on an axis: between cells `low` and `low` + 1, or outside by a factor.
struct Place {
  size_t low = 0;
  double part = 0;   // of the way to the next cell
  double scale = 1;  // beyond the ends in proportion
};

Place place(const std::vector<double>& axis, double value) {
  if (value <= axis.front()) return {0, 0, value / axis.front()};
  if (value >= axis.back()) return {axis.size() - 1, 0, value / axis.back()};
  const auto above = std::upper_bound(axis.begin(), axis.end(), value);
  const auto low = static_cast<size_t>(above - axis.begin()) - 1;
  return {low, (value - axis[low]) / (axis[low + 1] - axis[low]), 1};
}

}  // namespace

Padding Padding::of(const DeviceProfile& device) {
  return {device.standard_rows, device.row_tile, device.n_tile, device.k_tile};
}

int64_t Padding::rows(int64_t count) const {
  if (standard_rows.empty()) {
    return count == 1 ? 1 : (count + row_tile - 1) / row_tile * row_tile;
  }
  // Longer passes are several of the longest, and what remains.
  const int64_t longest = standard_rows.back();
  const int64_t whole = (count - 1) / longest * longest;
  return whole + *std::lower_bound(standard_rows.begin(), standard_rows.end(), count - whole);
}

ProductLaw::ProductLaw(std::span<const ProductPoint> points, Padding padding)
    : padding_(std::move(padding)) {
  std::map<std::pair<double, Order>, std::vector<const ProductPoint*>> sorted;
  for (const ProductPoint& point : points) {
    sorted[{point.weight_bits, point.order}].push_back(&point);
  }
  for (const auto& [key, of_key] : sorted) {
    Table made = make_table(of_key);
    made.weight_bits = key.first;
    made.order = key.second;
    tables_.push_back(std::move(made));
  }
}

ProductLaw::Table ProductLaw::make_table(const std::vector<const ProductPoint*>& points) const {
  Curves curves;
  for (const ProductPoint* point : points) {
    const Shape shape{static_cast<double>(padding_.outputs(point->n)),
                      static_cast<double>(padding_.inputs(point->k))};
    const auto rows = static_cast<double>(padding_.rows(point->rows));
    const auto [at, is_new] = curves[shape].emplace(rows, point->time.median_us);
    if (!is_new) at->second = std::max(at->second, point->time.median_us);
  }
  const Curve* main = nullptr;
  for (auto& [shape, curve] : curves) {
    make_rising(curve);
    if (main == nullptr || curve.size() >= main->size()) main = &curve;
  }
  Table table;
  std::set<double> ns, ks;
  for (const auto& [rows, us] : *main) table.rows.push_back(rows);
  for (const auto& [shape, curve] : curves) {
    ns.insert(shape.first);
    ks.insert(shape.second);
  }
  table.ns.assign(ns.begin(), ns.end());
  table.ks.assign(ks.begin(), ks.end());
  table.us.resize(table.rows.size() * ns.size() * ks.size());
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const double rows = table.rows[r];
    std::map<Shape, double> known;
    for (const auto& [shape, curve] : curves) {
      const auto measured = curve.find(rows);
      const double us = measured != curve.end() ? measured->second
                                                : ratio_at(curve, *main, rows) * main->at(rows);
      if (us > 0) known[shape] = us;
    }
    for (size_t n = 0; n < table.ns.size(); ++n) {
      for (size_t k = 0; k < table.ks.size(); ++k) {
        const Shape shape{table.ns[n], table.ks[k]};
        const auto found = known.find(shape);
        double& us = table.at(r, n, k);
        us = found != known.end() ? found->second : filled(known, shape);
      }
    }
    // A device that takes longer for a part could compute the larger piece instead: what was
    // measured of that stands.
    for (size_t n = table.ns.size(); n-- > 0;) {
      for (size_t k = table.ks.size(); k-- > 0;) {
        double& us = table.at(r, n, k);
        if (n + 1 < table.ns.size()) us = std::min(us, table.at(r, n + 1, k));
        if (k + 1 < table.ks.size()) us = std::min(us, table.at(r, n, k + 1));
      }
    }
    if (r == 0 || table.rows[r - 1] <= 1) continue;
    for (size_t i = 0; i < ns.size() * ks.size(); ++i) {
      double& us = table.us[r * ns.size() * ks.size() + i];
      us = std::max(us, table.us[(r - 1) * ns.size() * ks.size() + i]);
    }
  }
  return table;
}

double ProductLaw::Table::of(double at_rows, double n, double k) const {
  const Place along_n = place(ns, n);
  const Place along_k = place(ks, k);
  const auto plane = [&](size_t r) {
    const auto line = [&](size_t i) {
      const double low = at(r, i, along_k.low);
      return along_k.part > 0 ? low + along_k.part * (at(r, i, along_k.low + 1) - low) : low;
    };
    const double low = line(along_n.low);
    const double cell = along_n.part > 0 ? low + along_n.part * (line(along_n.low + 1) - low) : low;
    return cell * along_n.scale * along_k.scale;
  };
  if (at_rows <= rows.front()) return plane(0);
  if (at_rows >= rows.back()) return plane(rows.size() - 1) * at_rows / rows.back();
  const Place along_rows = place(rows, at_rows);
  const double low = plane(along_rows.low);
  if (along_rows.part <= 0) return low;
  return low + along_rows.part * (plane(along_rows.low + 1) - low);
}

const ProductLaw::Table* ProductLaw::table(double weight_bits, Order order) const {
  const Table* best = nullptr;
  double least = HUGE_VAL;
  for (const Table& one : tables_) {
    // Of the same type, the order that was asked for.
    const double away =
        std::abs(std::log(one.weight_bits / weight_bits)) + (one.order == order ? 0 : kSameBits);
    if (away >= least) continue;
    least = away;
    best = &one;
  }
  return best;
}

std::optional<double> ProductLaw::us(double weight_bits, int64_t rows, int64_t n, int64_t k,
                                     Order order) const {
  const Table* const found = table(weight_bits, order);
  if (found == nullptr) return std::nullopt;
  return found->of(static_cast<double>(padding_.rows(rows)),
                   static_cast<double>(padding_.outputs(n)),
                   static_cast<double>(padding_.inputs(k)));
}

}  // namespace troika::profile
