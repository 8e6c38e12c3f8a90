// Catches NaN and Inf in what a task wrote, and says which operator wrote them.
#pragma once

#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device {

// Looks through `outputs` of a finished task, rows of the batch only (padding may hold anything).
// kDeviceFailed naming device, operator, layer and row. Reads each output once, which costs little
// while it is in a cache; `cpu` is the reference and is not checked.
Status check_finite(const std::string& device, const Program& program, const Bindings& bindings);

}  // namespace troika::device
