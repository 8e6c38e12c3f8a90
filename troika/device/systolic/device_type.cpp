#include "troika/device/device_type.h"

#include "troika/device/paced/paced_device.h"
#include "troika/device/systolic/systolic_device.h"

namespace troika::device::systolic {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  SystolicOptions options;
  options.name = request.spec.text;
  options.cores = request.spec.cores;
  options.kernels = request.options.kernels;
  if (request.spec.instance.empty()) return open(options, request.clock);
  paced::PacedOptions paced_options;
  paced_options.name = request.spec.text;
  ASSIGN_OR_RETURN(paced_options.pace, paced::pace_of_static_unit(request.spec.instance));
  ASSIGN_OR_RETURN(auto wrapped, open(options, request.clock));
  return paced::open(std::move(paced_options), std::move(wrapped), request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{
    "systolic", "an NPU in software: static lengths, 32x32 tiles, FP16 inputs", open_requested};

}  // namespace troika::device::systolic
