#include "troika/device/device_type.h"

#include "troika/device/faulty/faulty_device.h"

namespace troika::device::faulty {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  ASSIGN_OR_RETURN(const Fault fault, parse_fault(request.spec.instance));
  return open(request.spec.text, fault, request.open_wrapped, request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{"faulty", "another device with a fault, for tests and drills",
                             open_requested, "faulty:nan@7:cpu@1"};

}  // namespace troika::device::faulty
