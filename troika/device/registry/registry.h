// The registry: every kind of device that this build knows, by the list in
// troika/device/CMakeLists.txt.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/device_string.h"
#include "troika/device/device_type.h"

namespace troika::device {

// In the order of the list TROIKA_DEVICES in troika/device/CMakeLists.txt.
std::span<const DeviceType* const> device_types();
// kNotFound for a name that is not in the registry, with the names that are.
Result<const DeviceType*> find_device_type(std::string_view name);

// Opens one device; kNotFound as above. It is supervised (device/supervised.h), as are those that
// it wraps.
Result<std::unique_ptr<Device>> open_device(const DeviceSpec& spec, const std::vector<int>& cores,
                                            const OpenOptions& options,
                                            const Clock& clock = system_clock());

// Opens the devices of a device string, in its order: all of them or none.
Result<std::vector<std::unique_ptr<Device>>> open_devices(std::string_view device_string,
                                                          const OpenOptions& options,
                                                          const Clock& clock = system_clock());

}  // namespace troika::device
