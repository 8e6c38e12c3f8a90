// What the program finds in the module.
#include "troika/device/openvino/module/device.h"
#include "troika/device/openvino/module_interface.h"

namespace {

using troika::Clock;
using troika::device::openvino::Opened;
using troika::device::openvino::OpenVinoOptions;

}  // namespace

extern "C" __attribute__((visibility("default"))) void troika_openvino_stamp(std::string* stamp) {
  *stamp = troika::device::openvino::interface_stamp();
}

extern "C" __attribute__((visibility("default"))) void troika_openvino_open(
    const OpenVinoOptions* options, const Clock* clock, Opened* opened) {
  auto device = troika::device::openvino::open_device(*options, *clock);
  if (device) {
    opened->device = std::move(*device);
  } else {
    opened->error = std::move(device.error());
  }
}
