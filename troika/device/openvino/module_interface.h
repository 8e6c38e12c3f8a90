// What the program and libtroika_openvino.so know of each other. Both are built together, by one
// compiler; the stamp tells when they are not.
#pragma once

#include <memory>
#include <string>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {

inline constexpr const char* kModuleFile = "libtroika_openvino.so";
inline constexpr const char* kStampSymbol = "troika_openvino_stamp";
inline constexpr const char* kOpenSymbol = "troika_openvino_open";

// Changes with the compiler and with the sizes of what crosses the border.
inline std::string interface_stamp() {
  return fmt::format("{}; {} {} {} {} {}", __VERSION__, sizeof(OpenVinoOptions), sizeof(DeviceInfo),
                     sizeof(Program), sizeof(graph::Op), sizeof(BatchView));
}

struct Opened {
  std::unique_ptr<Device> device;  // null: `error` says why
  Error error;
};

using StampFunction = void (*)(std::string* stamp);
using OpenFunction = void (*)(const OpenVinoOptions* options, const Clock* clock, Opened* opened);

}  // namespace troika::device::openvino
