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
    double least = HUGE_VAL;
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

// Products and attention of a pass with the work that each device needs for them.
class PassWork {
 public:
  PassWork(const graph::Graph& graph, const cost::CostModel& cost, const PrefillWork& pass)
      : graph_(graph), cost_(cost), pass_(pass) {
    keys_ = static_cast<double>(pass.depth) + (static_cast<double>(pass.rows) + 1) / 2;
    for (size_t i = 0; i < graph.ops.size(); ++i) add(static_cast<graph::OpId>(i));
  }

  double bytes() const { return bytes_; }

  // Of a set of devices, at the speeds that they keep beside each other.
  std::vector<DividedWork> of(const std::vector<size_t>& devices) const {
    std::vector<DividedWork> works;
    for (const auto& [key, count] : products_) {
      DividedWork work;
      for (const size_t device : devices) {
        work.us.push_back(product_us(device, key) * count / speed(device, devices));
      }
      works.push_back(std::move(work));
    }
    if (attention_macs_ > 0) {
      DividedWork work;
      for (const size_t device : devices) {
        const auto estimate = cost_.attention(device, attention_macs_, 0);
        work.us.push_back(estimate ? estimate->compute_us / speed(device, devices) : HUGE_VAL);
      }
      works.push_back(std::move(work));
    }
    return works;
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, double>;  // m, n, k, bits

  void add(graph::OpId id) {
    const graph::Op& op = graph_.op(id);
    const auto rows = static_cast<double>(pass_.rows);
    if (op.kind == OpKind::kAttention) {
      const auto width = static_cast<double>(op.heads.n_heads * op.heads.head_dim);
      attention_macs_ += 2 * width * keys_ * rows;
    } else if (op.kind == OpKind::kKvWrite) {
      for (const graph::TensorId input : op.inputs) {
        bytes_ += 2 * static_cast<double>(graph_.tensor(input).width) *
                  (static_cast<double>(pass_.depth) + rows);
      }
    } else if (op.kind == OpKind::kMatMul) {
      const int64_t n = graph_.tensor(op.output).width;
      const int64_t k = graph_.tensor(op.inputs[0]).width;
      const double weights = static_cast<double>(n) * static_cast<double>(k);
      const double bits = pass_.weight_bits > 0
                              ? pass_.weight_bits
                              : 8 * static_cast<double>(graph::weight_bytes(graph_, id)) / weights;
      const bool head = graph_.tensor(op.output).rows == graph::RowCount::kLogits;
      products_[{head ? std::min(pass_.logit_rows, pass_.rows) : pass_.rows, n, k, bits}] += 1;
      bytes_ += weights * bits / 8;
    }
  }

  double speed(size_t device, const std::vector<size_t>& devices) const {
    return devices.size() > 1 ? cost_.run_facts(device).speed_among_others : 1;
  }

  // Without padding, in as many pieces of its inputs as suit the device.
  double product_us(size_t device, const Key& key) const {
    const auto [m, n, k, bits] = key;
    const cost::DeviceFacts& facts = cost_.devices()[device];
    double best = HUGE_VAL;
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
        best = std::min(
            best, estimate->compute_us * unpadded(product, facts) * static_cast<double>(pieces));
        break;
      }
    }
    return best;
  }

  // The part of a padded product's work that is wanted.
  static double unpadded(const cost::Product& product, const cost::DeviceFacts& facts) {
    const auto part = [](int64_t extent, int64_t tile) {
      return static_cast<double>(extent) / static_cast<double>((extent + tile - 1) / tile * tile);
    };
    return part(product.m, facts.row_tile) * part(product.n, facts.n_tile) *
           part(product.k, facts.k_tile);
  }

  const graph::Graph& graph_;
  const cost::CostModel& cost_;
  const PrefillWork& pass_;
  double keys_ = 0;
  double bytes_ = 0;
  double attention_macs_ = 0;
  std::map<Key, double> products_;  // how many there are of each
};

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
    const double arithmetic_us = least_makespan_us(work.of(devices));
    const double memory_us = work.bytes() / cost.shared_gbps(mask) * 1e-3;
    const double us = std::max(arithmetic_us, memory_us);
    if (us < bound.us) bound = {us, arithmetic_us, memory_us, devices};
  }
  if (std::isfinite(bound.us)) return bound;
  return make_error(ErrorCode::kUnsupported, "no devices of the chip have all operators of a pass");
}

}  // namespace troika::forecast
