#include "troika/cost/profiled_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace troika::cost {
namespace {

using profile::DeviceProfile;

constexpr double kActivationBytes = 4;  // FP32
// A device of which no such operator was measured moves bytes as fast as it reads weights.
constexpr double kSlowestGbps = 1e-3;
// A layer that takes less or more of its products' time than this was disturbed.
constexpr double kLeastInLayers = 0.3;
constexpr double kMostInLayers = 3;

double dimension(int64_t value) { return static_cast<double>(value); }

std::string_view kind_of(const std::string& kind) {
  for (const std::string_view known : {"gpu", "npu"}) {
    if (kind == known) return known;
  }
  return "cpu";
}

// Of the type with the most points: that of most weights.
double main_bits_of(const DeviceProfile& device) {
  std::map<double, int> counts;
  for (const auto& point : device.products) ++counts[point.weight_bits];
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// Where a device has none of its own: graphs are kept for powers of two of its tile.
std::vector<int64_t> standard_lengths_of(const DeviceProfile& device) {
  std::vector<int64_t> lengths = device.standard_rows;
  if (!lengths.empty() || device.row_tile == 1) return lengths;
  int64_t longest = device.row_tile;
  for (const auto& point : device.products) longest = std::max(longest, point.rows);
  for (int64_t rows = device.row_tile; rows <= longest; rows *= 2) lengths.push_back(rows);
  return lengths;
}

}  // namespace

// Least squares of relative errors, with coefficients that are not negative: the best of all
// subsets of the three terms.
struct ProfiledCost::Fit {
  std::vector<std::array<double, 4>> rows;  // 1, x, y, us

  void add(double x, double y, double us) {
    if (us > 0) rows.push_back({1 / us, x / us, y / us, us});
  }

  Line solve() const {
    Line best;
    double least = HUGE_VAL;
    for (unsigned set = 1; set < 8; ++set) {
      const auto found = solve_set(set);
      if (!found) continue;
      double error = 0;
      for (const auto& row : rows) {
        const double sum = (*found)[0] * row[0] + (*found)[1] * row[1] + (*found)[2] * row[2];
        error += (sum - 1) * (sum - 1);
      }
      // A term must earn its place.
      if (error >= least * (1 - 1e-9)) continue;
      least = error;
      best = {(*found)[0], (*found)[1], (*found)[2], true};
    }
    return best;
  }

 private:
  // Normal equations of the terms in `set`; nullopt if they have no solution without negatives.
  std::optional<std::array<double, 3>> solve_set(unsigned set) const {
    std::vector<size_t> terms;
    for (size_t i = 0; i < 3; ++i) {
      const bool varies =
          std::any_of(rows.begin(), rows.end(), [i](const auto& r) { return r[i] > 0; });
      if ((set >> i & 1) == 0) continue;
      if (!varies) return std::nullopt;
      terms.push_back(i);
    }
    const size_t n = terms.size();
    std::array<std::array<double, 4>, 3> a{};
    for (const auto& row : rows) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) a[i][j] += row[terms[i]] * row[terms[j]];
        a[i][n] += row[terms[i]];
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (!(a[i][i] > 1e-300)) return std::nullopt;
      for (size_t j = 0; j < n; ++j) {
        if (j == i) continue;
        const double factor = a[j][i] / a[i][i];
        for (size_t c = i; c <= n; ++c) a[j][c] -= factor * a[i][c];
      }
    }
    std::array<double, 3> result{};
    for (size_t i = 0; i < n; ++i) {
      const double value = a[i][n] / a[i][i];
      if (!std::isfinite(value) || value < 0) return std::nullopt;
      result[terms[i]] = value;
    }
    return result;
  }
};

Result<ProfiledCost> ProfiledCost::create(profile::Profile profile) {
  ProfiledCost cost(std::move(profile));
  for (const DeviceProfile& device : cost.profile_.devices) {
    const bool measured = std::any_of(device.products.begin(), device.products.end(),
                                      [](const auto& p) { return p.time.median_us > 0; });
    if (!measured) {
      return make_error(ErrorCode::kInvalidData,
                        "profile: no product of device {} was measured; run 'troika profile' again",
                        device.name);
    }
    cost.learn(device);
  }
  if (cost.facts_.empty()) {
    return make_error(ErrorCode::kInvalidData, "profile: it has no devices");
  }
  cost.learn_pairs();
  return cost;
}

void ProfiledCost::learn(const DeviceProfile& device) {
  DeviceFacts facts;
  facts.name = device.name;
  facts.kind = kind_of(device.kind);
  facts.row_tile = device.row_tile;
  facts.n_tile = std::max(device.n_tile, device.n_cut);
  facts.k_tile = std::max(device.k_tile, device.k_cut);
  facts.standard_lengths = standard_lengths_of(device);
  facts.static_graphs = !device.standard_rows.empty() || device.row_tile > 1;
  facts.only_products = device.attention.empty() && device.elementwise.empty();
  facts.bandwidth_gbps = std::max(device.read_gbps, kSlowestGbps);
  facts_.push_back(std::move(facts));

  Laws laws{
      profile::ProductLaw(device.products, profile::Padding::of(device)), {}, {}, 0, {}, {}, {}};
  Fit attention, reading;
  double most_of_few = 0;
  double least_of_many = HUGE_VAL;
  for (const profile::AttentionPoint& p : device.attention) {
    const double intensity = p.macs() / p.bytes();
    if (p.rows <= profile::kFewRows) {
      reading.add(0, p.bytes(), p.time.median_us);
      most_of_few = std::max(most_of_few, intensity);
    } else {
      attention.add(p.macs(), p.bytes(), p.time.median_us);
      least_of_many = std::min(least_of_many, intensity);
    }
  }
  laws.attention = attention.solve();
  laws.reading = reading.solve();
  if (!laws.attention.known) laws.attention = laws.reading;
  if (laws.reading.known) {
    laws.reading_until = std::sqrt(most_of_few * std::max(most_of_few, least_of_many));
  }
  Fit elementwise;
  for (const profile::ElementwisePoint& p : device.elementwise) {
    elementwise.add(p.bytes, 0, p.time.median_us);
  }
  laws.elementwise = elementwise.solve();
  Fit build;
  for (const profile::BuildPoint& p : device.builds) build.add(dimension(p.rows), 0, p.build_us);
  laws.build = build.solve();
  learn_layers(device, laws);
  laws_.push_back(std::move(laws));
}

// What layers show of the products in them: everything else is as it was measured alone.
void ProfiledCost::learn_layers(const DeviceProfile& device, Laws& laws) const {
  const profile::ProfiledModel& model = profile_.model;
  const double bits = main_bits_of(device);
  const int64_t q = model.n_heads * model.head_dim;
  const int64_t kv = model.n_kv_heads * model.head_dim;
  const std::array<std::pair<int64_t, int64_t>, 7> shapes = {{{q, model.hidden},
                                                              {kv, model.hidden},
                                                              {kv, model.hidden},
                                                              {model.hidden, q},
                                                              {model.ffn, model.hidden},
                                                              {model.ffn, model.hidden},
                                                              {model.hidden, model.ffn}}};
  for (const profile::LayerPoint& point : device.layers) {
    double products = 0;
    for (const auto& [n, k] : shapes) {
      products += laws.products.us(bits, point.rows, n, k).value_or(0);
    }
    profile::AttentionPoint attention;
    attention.rows = point.rows;
    attention.depth = point.depth;
    attention.n_heads = model.n_heads;
    attention.n_kv_heads = model.n_kv_heads;
    attention.head_dim = model.head_dim;
    // Two norms, two rotations, the KV write, the gated product and two sums, as a plan counts
    // them.
    const double row_bytes =
        kActivationBytes * static_cast<double>(10 * model.hidden + 2 * q + 4 * kv + 3 * model.ffn);
    const double others = laws.attention_us(attention.macs(), attention.bytes()) +
                          7 * laws.elementwise.base +
                          laws.elementwise.per_x * row_bytes * dimension(point.rows);
    const double left = point.time.median_us - device.launch.task_us - others;
    if (products <= 0) continue;
    laws.in_layers.emplace_back(dimension(point.rows),
                                std::clamp(left / products, kLeastInLayers, kMostInLayers));
  }
  std::sort(laws.in_layers.begin(), laws.in_layers.end());
}

double ProfiledCost::in_layers(const Laws& laws, double rows) const {
  const auto& points = laws.in_layers;
  if (points.empty()) return 1;
  if (rows <= points.front().first) return points.front().second;
  for (size_t i = 1; i < points.size(); ++i) {
    if (rows > points[i].first) continue;
    const double part =
        std::log(rows / points[i - 1].first) / std::log(points[i].first / points[i - 1].first);
    return points[i - 1].second + part * (points[i].second - points[i - 1].second);
  }
  return points.back().second;
}

// Sets of devices reach together what pairs keep of their speeds.
void ProfiledCost::learn_pairs() {
  const size_t n = facts_.size();
  const auto keeps = [this](const std::string& of, const std::string& with) {
    for (const profile::PairProfile& pair : profile_.pairs) {
      if (pair.first == of && pair.second == with) return pair.first_keeps;
      if (pair.second == of && pair.first == with) return pair.second_keeps;
    }
    return 1.0;
  };
  shared_.assign(size_t{1} << n, 0);
  for (uint32_t mask = 1; mask < shared_.size(); ++mask) {
    double sum = 0;
    double least = 0;  // of every smaller set
    for (size_t i = 0; i < n; ++i) {
      if ((mask >> i & 1) == 0) continue;
      double kept = 1;
      for (size_t j = 0; j < n; ++j) {
        if (j != i && (mask >> j & 1) != 0) {
          kept = std::min(kept, keeps(facts_[i].name, facts_[j].name));
        }
      }
      sum += facts_[i].bandwidth_gbps * kept;
      least = std::max(least, shared_[mask & ~(1u << i)]);
    }
    shared_[mask] = std::max(sum, least);
  }
  for (const profile::PairProfile& pair : profile_.pairs) {
    join_us_ = std::max(join_us_, pair.join_us);
    blocking_join_us_ = std::max({blocking_join_us_, pair.join_us, pair.blocking_join_us});
  }
}

std::optional<Estimate> ProfiledCost::product(size_t device, const Product& product) const {
  const Laws& laws = laws_[device];
  const auto order =
      product.weight_stationary ? profile::Order::kWeightInPlace : profile::Order::kInputInPlace;
  const auto us = laws.products.us(product.weight_bits, product.m, product.n, product.k, order);
  if (!us) return std::nullopt;
  const profile::Padding& padding = laws.products.padding();
  Estimate estimate;
  estimate.fixed_us = profile_.devices[device].launch.task_us;
  estimate.compute_us = *us * in_layers(laws, dimension(padding.rows(product.m)));
  const double n = dimension(padding.outputs(product.n));
  const double k = dimension(padding.inputs(product.k));
  estimate.bytes =
      n * k * product.weight_bits / 8 + kActivationBytes * dimension(product.m) * (n + k);
  // What it draws is by the measured time; the memory alone is never slower than that.
  estimate.memory_us =
      std::min(estimate.compute_us, estimate.bytes / facts_[device].bandwidth_gbps * 1e-3);
  estimate.integer = profile_.devices[device].int8_inputs;
  return estimate;
}

std::optional<Estimate> ProfiledCost::attention(size_t device, double macs, double bytes) const {
  const Laws& laws = laws_[device];
  if (!laws.attention.known) return std::nullopt;
  Estimate estimate;
  estimate.bytes = bytes;
  estimate.compute_us = laws.attention_us(macs, bytes);
  return estimate;
}

Estimate ProfiledCost::elementwise(size_t device, double bytes) const {
  const Line& law = laws_[device].elementwise;
  Estimate estimate;
  estimate.bytes = bytes;
  estimate.memory_us = law.known ? law.of(bytes) : bytes / facts_[device].bandwidth_gbps * 1e-3;
  return estimate;
}

double ProfiledCost::launch_us(size_t device, bool drained) const {
  const profile::LaunchCosts& costs = profile_.devices[device].launch;
  return costs.task_us + (drained ? costs.drained_us : costs.queued_us);
}

double ProfiledCost::build_us(size_t device, int64_t rows) const {
  if (!facts_[device].static_graphs) return 0;
  return laws_[device].build.of(dimension(rows));
}

}  // namespace troika::cost
