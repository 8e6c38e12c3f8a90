#include "troika/planner/unit_devices.h"

#include <map>
#include <set>

namespace troika::planner {

plan::Plan for_devices(plan::Plan plan, const soc::Soc& soc) {
  std::map<std::string, std::string> devices;
  std::set<std::string> different;
  for (const std::string& name : plan.devices) {
    const std::optional<size_t> unit = soc.unit(name);
    const std::string device = unit ? soc::device_of(soc.units[*unit]) : "";
    devices[name] = device.empty() ? name : device;
    different.insert(devices[name]);
  }
  if (different.size() < plan.devices.size()) return plan;
  for (std::string& name : plan.devices) name = devices[name];
  for (plan::RowsBucket& bucket : plan.buckets) {
    for (plan::Placement& placement : bucket.placements) {
      for (plan::Part& part : placement.parts) part.device = devices[part.device];
    }
  }
  return plan;
}

}  // namespace troika::planner
