#include "troika/profile/record/profile.h"

#include <algorithm>
#include <cmath>

namespace troika::profile {

std::string_view to_string(Order order) {
  return order == Order::kInputInPlace ? "input" : "weight";
}

double AttentionPoint::keys() const {
  return static_cast<double>(depth) + (static_cast<double>(rows) + 1) / 2;
}

double AttentionPoint::macs() const {
  return 2 * static_cast<double>(n_heads) * static_cast<double>(head_dim) * keys() *
         static_cast<double>(rows);
}

double AttentionPoint::bytes() const {
  const double activations = 8 * static_cast<double>(rows) * static_cast<double>(n_heads);
  const double kept = 4 * keys() * static_cast<double>(n_kv_heads);
  return (activations + kept) * static_cast<double>(head_dim);
}

double CheckPoint::error() const {
  return measured_us > 0 ? std::abs(predicted_us - measured_us) / measured_us : 0;
}

double DeviceProfile::stated_error() const {
  double most = 0;
  for (const CheckPoint& check : checks) most = std::max(most, check.error());
  return most;
}

std::string Machine::power_mode() const {
  return governor + ", " + power_profile + ", " + power_source;
}

const DeviceProfile* Profile::device(std::string_view name) const {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

}  // namespace troika::profile
