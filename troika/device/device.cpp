#include "troika/device/device.h"

#include <algorithm>

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

std::string_view to_string(KvType type) { return type == KvType::kF32 ? "f32" : "f16"; }

size_t Program::index_of(graph::TensorId tensor) const {
  return static_cast<size_t>(std::find(tensors.begin(), tensors.end(), tensor) - tensors.begin());
}

}  // namespace troika::device
