#include "troika/planner/pass_costs.h"

namespace troika::planner {
namespace {

device::DeviceKind kind_of(std::string_view kind) {
  if (kind == "gpu") return device::DeviceKind::kGpu;
  return kind == "npu" ? device::DeviceKind::kNpu : device::DeviceKind::kCpu;
}

// Whether a product of one row can be had at all, by whatever path.
bool takes_one_row(const cost::CostModel& cost, size_t device) {
  for (const std::string_view type : soc::types_near(4)) {
    cost::Product product{1, 4096, 4096};
    product.type = type;
    if (cost.product(device, product)) return true;
  }
  return false;
}

}  // namespace

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
    if (has_lengths && info.standard_rows.front() > 1 && takes_one_row(cost, device)) {
      info.standard_rows.insert(info.standard_rows.begin(), 1);
    }
    if (facts.static_graphs && request.build_graphs) info.standard_rows = {};
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace troika::planner
