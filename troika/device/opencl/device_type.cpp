#include "troika/device/device_type.h"

#include "troika/device/opencl/opencl_device.h"

namespace troika::device::opencl {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  OpenClOptions options;
  options.name = request.spec.text;
  options.instance = request.spec.instance;
  if (!request.spec.cores.empty()) options.cores = request.cores;
  options.cache_dir = request.options.program_cache_dir;
  options.own_memory = request.options.own_memory;
  options.device_times = request.options.device_times;
  return open(options, request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{"opencl", "a GPU through OpenCL, or a processor's OpenCL runtime",
                             open_requested};

}  // namespace troika::device::opencl
