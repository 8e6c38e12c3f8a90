#include "troika/device/device.h"

namespace troika::device {

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kGpu:
      return "gpu";
    case DeviceKind::kNpu:
      return "npu";
  }
  return "";
}

}  // namespace troika::device
