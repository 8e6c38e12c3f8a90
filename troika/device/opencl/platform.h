// The OpenCL devices of this machine and their facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"

namespace troika::device::opencl {

struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  std::string platform_name;
  std::string name;
  std::string vendor;
  std::string driver;      // driver version
  std::string version;     // "OpenCL 3.0 CUDA"
  std::string extensions;  // with blanks between
  cl_device_type type = 0;
  bool unified_memory = false;
  bool coherent = false;  // shares memory with the host without being told (fine-grained SVM)
  int64_t memory_bytes = 0;
  int64_t largest_buffer = 0;
  int64_t local_bytes = 0;
  int64_t work_group = 0;  // most work-items
  int64_t units = 0;       // compute units
  // Multiplies matrices of signed bytes as product_one.cl asks for it.
  bool matrix_units = false;

  bool is_processor() const { return (type & CL_DEVICE_TYPE_CPU) != 0; }
  bool has(std::string_view extension) const;
};

// In the order of platforms; GPUs are not sorted to the front. kNotFound if there is no loader, no
// runtime, or none that has a device.
Result<std::vector<DeviceFacts>> find_devices();

// The device that an instance names, as OpenClOptions::instance says.
Result<DeviceFacts> choose_device(const std::string& instance);

}  // namespace troika::device::opencl
