#include "troika/planner/pass_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troika::planner {
namespace {

device::DeviceKind kind_of(std::string_view kind) {
  if (kind == "gpu") return device::DeviceKind::kGpu;
  return kind == "npu" ? device::DeviceKind::kNpu : device::DeviceKind::kCpu;
}

// Whether a product of one row can be had at all, by whatever path is allowed.
bool takes_one_row(const cost::CostModel& cost, size_t device, bool integers) {
  for (const std::string_view type : soc::types_near(4)) {
    cost::Product product{1, 4096, 4096};
    product.type = type;
    const auto work = cost.product(device, product);
    if (work && (integers || !work->integer)) return true;
  }
  return false;
}

}  // namespace

bool has_power(const cost::CostModel& cost, size_t device) {
  const cost::RunFacts facts = cost.run_facts(device);
  return facts.compute_w > 0 || facts.memory_w > 0;
}

std::vector<device::DeviceInfo> infos_for(const cost::CostModel& cost, const PassRequest& request) {
  if (!request.infos.empty()) return request.infos;
  std::vector<device::DeviceInfo> infos;
  for (size_t device = 0; device < cost.devices().size(); ++device) {
    const cost::DeviceFacts& facts = cost.devices()[device];
    device::DeviceInfo info;
    info.name = facts.name;
    info.kind = kind_of(facts.kind);
    info.n_tile = facts.n_tile;
    info.k_tile = facts.k_tile;
    info.strided = !facts.static_graphs;
    info.standard_rows = facts.standard_lengths;
    const bool has_lengths = !info.standard_rows.empty();
    // A single row among many may be padded; a pass of one row is the device's own path or nothing.
    const bool any_path = request.integer_activations || request.rows == 1;
    if (has_lengths && info.standard_rows.front() > 1 && takes_one_row(cost, device, any_path)) {
      info.standard_rows.insert(info.standard_rows.begin(), 1);
    }
    if (facts.static_graphs && request.build_graphs) info.standard_rows = {};
    infos.push_back(std::move(info));
  }
  return infos;
}

sim::LoweredOptions lowered_options(const PassRequest& request,
                                    const std::vector<device::DeviceInfo>& infos) {
  sim::LoweredOptions options;
  for (size_t i = 0; i < infos.size(); ++i) {
    options.devices.push_back(i);
    options.standard_rows.push_back(infos[i].standard_rows);
  }
  options.depth = request.depth;
  options.logit_rows = request.logit_rows;
  options.sync = request.sync;
  options.weight_bits = request.weight_bits;
  options.head_bits = request.head_bits;
  options.activation_bits = request.activation_bits;
  return options;
}

sim::Noise variation_noise(const PassRequest& request, int32_t seed) {
  return {request.budget.seed * 1000 + static_cast<uint64_t>(seed), request.variation.deviation,
          request.variation.device_deviation};
}

Forecast mean_and_p90(std::vector<double>& times) {
  Forecast forecast;
  std::sort(times.begin(), times.end());
  const auto n = static_cast<double>(times.size());
  forecast.mean_us = std::accumulate(times.begin(), times.end(), 0.0) / n;
  forecast.p90_us = times[static_cast<size_t>(std::ceil(0.9 * n)) - 1];
  return forecast;
}

}  // namespace troika::planner
