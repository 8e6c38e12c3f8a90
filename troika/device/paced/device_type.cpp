#include "troika/device/device_type.h"

#include "troika/device/paced/paced_device.h"

namespace troika::device::paced {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  PacedOptions options;
  options.name = request.spec.text;
  ASSIGN_OR_RETURN(options.pace, parse_pace(request.spec.instance));
  ASSIGN_OR_RETURN(auto wrapped, request.open_wrapped());
  return open(std::move(options), std::move(wrapped), request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{"paced", "another device with the timing of a described one",
                             open_requested, "paced:snapdragon-8-gen-3.gpu@250:cpu@0"};

}  // namespace troika::device::paced
