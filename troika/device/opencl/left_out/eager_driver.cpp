// In builds without OpenCL.
#include "troika/device/opencl/testing/eager_driver.h"

namespace troika::device::opencl {

EagerDriver::EagerDriver() = default;
EagerDriver::~EagerDriver() = default;
int64_t EagerDriver::late_copies() const { return 0; }

}  // namespace troika::device::opencl
