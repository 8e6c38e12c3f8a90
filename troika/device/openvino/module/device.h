// The device itself, inside the module.
#pragma once

#include <memory>

#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {

// Lets no exception out.
Result<std::unique_ptr<Device>> open_device(const OpenVinoOptions& options, const Clock& clock);

}  // namespace troika::device::openvino
