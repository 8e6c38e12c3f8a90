#include "troika/device/device_type.h"

#include "troika/device/cpu/cpu_device.h"

namespace troika::device::cpu {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  if (!request.spec.instance.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write cpu or cpu@first-last",
                      request.spec.text, request.spec.instance);
  }
  CpuOptions options;
  options.name = request.spec.text;
  options.threads = static_cast<int>(request.cores.size());
  // Threads that nobody bound to cores are left to the system: two programs would else share one.
  if (!request.spec.cores.empty()) options.cores = request.cores;
  options.kernels = request.options.kernels;
  return open(options, request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{
    "cpu", "the processor's cores: SIMD kernels, the reference for all others", open_requested};

}  // namespace troika::device::cpu
