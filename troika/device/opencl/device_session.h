// The OpenCL objects of an open device, which everything else borrows.
#pragma once

#include "troika/device/opencl/api.h"
#include "troika/device/opencl/kernel_set.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/device/opencl/platform.h"

namespace troika::device::opencl {

struct Session {
  DeviceFacts facts;
  ContextHandle context;
  QueueHandle queue;
  DeviceClass device_class = DeviceClass::kGpu;
  bool own_memory = false;
  bool tile_weights = false;  // even without matrix units
  bool profiled = false;      // the queue tells times
  std::string broken_kernel;  // see OpenClOptions
};
Result<Session> open_session(const OpenClOptions& options);

}  // namespace troika::device::opencl
