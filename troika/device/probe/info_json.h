// A DeviceInfo as JSON, for `troika devices` and for what a probing child tells its parent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "troika/device/device.h"

namespace troika::device {

nlohmann::ordered_json to_json(const DeviceInfo& info);
// Whatever the value is: nullopt unless it describes a device.
std::optional<DeviceInfo> info_from_json(const nlohmann::ordered_json& value);

}  // namespace troika::device
