// The `half` device: products of FP16 inputs with FP32 sums in plain C++, at fixed numbers of rows.
// A small and complete device, to copy from; docs/adding_a_device.md goes through it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device::half {

struct HalfOptions {
  std::string name = "half";
  std::vector<int> cores;  // one to pin the worker to; empty: not pinned
};

// kInvalidArgument for more than one core, kDeviceFailed if its thread cannot be started.
Result<std::unique_ptr<Device>> open(const HalfOptions& options,
                                     const Clock& clock = system_clock());

}  // namespace troika::device::half
