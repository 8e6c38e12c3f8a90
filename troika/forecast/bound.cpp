#include "troika/forecast/bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace troika::forecast {
namespace {

using graph::OpKind;

double sum_at(std::span<const DividedWork> works, const std::vector<double>& prices) {
  double sum = 0;
  for (const DividedWork& work : works) {
    double least = work.alone_us;
    for (size_t d = 0; d < prices.size(); ++d) {
      if (std::isfinite(work.us[d])) least = std::min(least, prices[d] * work.us[d]);
    }
    sum += least;
  }
  return sum;
}

// Greatest over prices[device..] that add up to `left`; concave in each price, so that a search by
// golden sections finds it.
double greatest(std::span<const DividedWork> works, std::vector<double>& prices, size_t device,
                double left) {
  if (device + 1 == prices.size()) {
    prices[device] = left;
    return sum_at(works, prices);
  }
  const auto at = [&](double price) {
    prices[device] = price;
    return greatest(works, prices, device + 1, left - price);
  };
  constexpr double kGolden = 0.6180339887498949;
  double low = 0;
  double high = left;
  double a = high - kGolden * (high - low);
  double b = low + kGolden * (high - low);
  double at_a = at(a);
  double at_b = at(b);
  constexpr int kSteps = 34;  // leaves 1e-7 of the range
  for (int i = 0; i < kSteps; ++i) {
    if (at_a < at_b) {
      low = a;
      a = b;
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = at(b);
    } else {
      high = b;
      b = a;
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = at(a);
    }
  }
  return std::max({at_a, at_b, at(0), at(left)});
}

// What a device needs for a whole operator, alone and at the sustained clock.
struct OnDevice {
  double compute_us = HUGE_VAL;
  double memory_us = HUGE_VAL;  // at its own bandwidth
  double bytes = HUGE_VAL;      // that reach the memory
};

// How fast arithmetic is: turbo, and what is kept beside others.
using Speeds = std::vector<double>;

// The operators of a pass, equal ones together, with what each device needs for them.
class PassWork {
 public:
  PassWork(const graph::Graph& graph, const cost::CostModel& cost, const PrefillWork& pass)
      : graph_(graph), cost_(cost), pass_(pass) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const auto id = static_cast<graph::OpId>(i);
      ++counts_[key_of(id)];
    }
    for (const auto& [key, count] : counts_) {
      std::vector<OnDevice> on;
      for (size_t device = 0; device < cost.devices().size(); ++device) {
        on.push_back(on_device(device, key));
      }
      works_.push_back({static_cast<double>(count), std::move(on)});
    }
  }

  // Of a set of devices; for each of them its speed among the others, and while it works alone.
  std::vector<DividedWork> of(const std::vector<size_t>& devices, const Speeds& speeds,
                              const Speeds& alone) const {
    std::vector<DividedWork> divided;
    for (const Work& work : works_) {
      DividedWork one;
      for (size_t i = 0; i < devices.size(); ++i) {
        const OnDevice& on = work.on[devices[i]];
        one.us.push_back(work.count * std::max(on.compute_us / speeds[i], on.memory_us));
        one.alone_us =
            std::min(one.alone_us, work.count * std::max(on.compute_us / alone[i], on.memory_us));
      }
      divided.push_back(std::move(one));
    }
    return divided;
  }

  // The least that a set of devices moves.
  double bytes(const std::vector<size_t>& devices) const {
    double sum = 0;
    for (const Work& work : works_) {
      double least = HUGE_VAL;
      for (const size_t device : devices) least = std::min(least, work.on[device].bytes);
      sum += work.count * least;
    }
    return sum;
  }

 private:
  // Kind, rows, then of a product n and k, of attention heads' widths and group; bits of a weight
  // or bytes that are moved.
  using Key = std::tuple<OpKind, int64_t, int64_t, int64_t, double>;
  struct Work {
    double count = 0;
    std::vector<OnDevice> on;
  };

  double element_bytes(graph::TensorId id) const {
    return pass_.activation_bits > 0
               ? pass_.activation_bits / 8
               : static_cast<double>(graph::dtype_bytes(graph_.tensor(id).type));
  }

  double moved_bytes(const graph::Op& op, int64_t rows) const {
    const auto of = [&](graph::TensorId id) {
      return static_cast<double>(graph_.tensor(id).width) * element_bytes(id) *
             static_cast<double>(rows);
    };
    double bytes = of(op.output);
    for (const graph::TensorId input : op.inputs) bytes += of(input);
    return bytes;
  }

  Key key_of(graph::OpId id) const {
    const graph::Op& op = graph_.op(id);
    const bool head = op.stage == graph::Stage::kHead;
    const int64_t rows = head ? std::min(pass_.logit_rows, pass_.rows) : pass_.rows;
    if (op.kind == OpKind::kAttention) {
      return {op.kind, rows, op.heads.n_heads * op.heads.head_dim, op.heads.group,
              moved_bytes(op, rows)};
    }
    if (op.kind != OpKind::kMatMul) return {OpKind::kAdd, rows, 0, 0, moved_bytes(op, rows)};
    const int64_t n = graph_.tensor(op.output).width;
    const int64_t k = graph_.tensor(op.inputs[0]).width;
    const double asked = head && pass_.head_bits > 0 ? pass_.head_bits : pass_.weight_bits;
    const double bits = asked > 0 ? asked
                                  : 8 * static_cast<double>(graph::weight_bytes(graph_, id)) /
                                        (static_cast<double>(n) * static_cast<double>(k));
    return {op.kind, rows, n, k, bits};
  }

  OnDevice on_device(size_t device, const Key& key) const {
    const auto& [kind, rows, n, k, amount] = key;
    if (kind == OpKind::kMatMul) return product(device, rows, n, k, amount);
    if (kind == OpKind::kAttention) {
      const double keys = static_cast<double>(pass_.depth) + (static_cast<double>(rows) + 1) / 2;
      const auto width = static_cast<double>(n);
      // Keys and values once, in 16 bits.
      const double kv_bytes =
          2 * 2 * width / static_cast<double>(k) * static_cast<double>(pass_.depth + rows);
      const auto estimate =
          cost_.attention(device, 2 * width * keys * static_cast<double>(rows), amount + kv_bytes);
      if (!estimate) return {};
      return {estimate->compute_us, estimate->memory_us, estimate->bytes};
    }
    if (cost_.devices()[device].only_products) return {};
    const cost::Estimate estimate = cost_.elementwise(device, amount);
    return {estimate.compute_us, estimate.memory_us, estimate.bytes};
  }

  // Without padding, in as many pieces of its inputs as suit the device.
  OnDevice product(size_t device, int64_t m, int64_t n, int64_t k, double bits) const {
    const cost::DeviceFacts& facts = cost_.devices()[device];
    OnDevice best;
    for (int64_t pieces = 1; pieces <= 8 && k / pieces >= facts.k_tile; pieces *= 2) {
      cost::Product product;
      product.m = m;
      product.n = n;
      product.k = k / pieces;
      product.weight_bits = bits;
      for (const std::string_view type : soc::types_near(bits)) {
        product.type = type;
        const auto estimate = cost_.product(device, product);
        if (!estimate || (estimate->integer && !pass_.integer_activations)) continue;
        const auto times = static_cast<double>(pieces);
        const double compute_us = estimate->compute_us * unpadded(product, facts) * times;
        // Results of pieces are added up where they are.
        if (compute_us < best.compute_us) {
          best = {compute_us, std::min(best.memory_us, estimate->memory_us * times),
                  std::min(best.bytes, estimate->bytes * times)};
        }
        break;
      }
    }
    return best;
  }

  // The part of a padded product's work that is wanted.
  static double unpadded(const cost::Product& product, const cost::DeviceFacts& facts) {
    const auto part = [](int64_t extent, int64_t tile) {
      const int64_t tiles = (extent + tile - 1) / tile;
      return static_cast<double>(extent) / static_cast<double>(tiles * tile);
    };
    return part(product.m, facts.row_tile) * part(product.n, facts.n_tile) *
           part(product.k, facts.k_tile);
  }

  const graph::Graph& graph_;
  const cost::CostModel& cost_;
  const PrefillWork& pass_;
  std::map<Key, int64_t> counts_;
  std::vector<Work> works_;
};

// Of a set whose devices all work: at turbo clocks until the turbo is spent, then at others.
double devices_us(const PassWork& work, const cost::CostModel& cost,
                  const std::vector<size_t>& devices) {
  Speeds sustained;
  Speeds turbo;
  Speeds turbo_alone;
  const cost::ChipFacts chip = cost.chip_facts();
  double turbo_w = chip.idle_w;
  for (const size_t device : devices) {
    const cost::RunFacts facts = cost.run_facts(device);
    sustained.push_back(devices.size() > 1 ? facts.speed_among_others : 1);
    turbo.push_back(sustained.back() * facts.turbo_speed);
    turbo_alone.push_back(facts.turbo_speed);
    turbo_w += facts.turbo_power * std::min(facts.compute_w, facts.memory_w);
  }
  const Speeds alone(devices.size(), 1);
  const double us = least_makespan_us(work.of(devices, sustained, alone));
  if (chip.turbo_mj <= 0 || !std::isfinite(us)) return us;
  const double fast_us = least_makespan_us(work.of(devices, turbo, turbo_alone));
  const double lasts_us = turbo_w > 0 ? chip.turbo_mj / turbo_w * 1e3 : HUGE_VAL;
  if (lasts_us >= fast_us) return fast_us;
  return lasts_us + (1 - lasts_us / fast_us) * us;
}

}  // namespace

double least_makespan_us(std::span<const DividedWork> works) {
  if (works.empty()) return 0;
  for (const DividedWork& work : works) {
    const bool any =
        std::any_of(work.us.begin(), work.us.end(), [](double us) { return std::isfinite(us); });
    if (!any) return HUGE_VAL;
  }
  std::vector<double> prices(works.front().us.size(), 0);
  return greatest(works, prices, 0, 1);
}

Result<Bound> prefill_bound(const graph::Graph& graph, const cost::CostModel& cost,
                            const PrefillWork& pass) {
  const PassWork work(graph, cost, pass);
  Bound bound;
  bound.us = HUGE_VAL;
  // More than three at once would take long to search, and no chip has them.
  constexpr size_t kMostTogether = 3;
  const auto n = std::min<size_t>(cost.devices().size(), soc::kMaxUnits);
  for (uint32_t mask = 1; mask < 1u << n; ++mask) {
    std::vector<size_t> devices;
    for (size_t d = 0; d < n; ++d) {
      if ((mask >> d & 1) != 0) devices.push_back(d);
    }
    if (devices.size() > kMostTogether) continue;
    const double work_us = devices_us(work, cost, devices);
    const double memory_us = work.bytes(devices) / cost.shared_gbps(mask) * 1e-3;
    const double us = std::max(work_us, memory_us);
    // Of sets that are as good the first one, with the fewest devices: the search is as exact.
    constexpr double kExact = 1e-6;
    if (us < bound.us * (1 - kExact)) bound = {us, work_us, memory_us, devices};
  }
  if (std::isfinite(bound.us)) return bound;
  return make_error(ErrorCode::kUnsupported, "no devices of the chip have all operators of a pass");
}

}  // namespace troika::forecast
