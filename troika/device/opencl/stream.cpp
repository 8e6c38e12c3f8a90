#include "troika/device/opencl/stream.h"

namespace troika::device::opencl {

Status launch(cl_command_queue queue, const Arguments& arguments, const LaunchSize& size) {
  RETURN_IF_ERROR(check_call("clSetKernelArg", arguments.code()));
  if (size.global[0] == 0 || size.global[1] == 0) return {};
  return check_call("clEnqueueNDRangeKernel",
                    api().EnqueueNDRangeKernel(
                        queue, arguments.kernel(), 2, nullptr, size.global.data(),
                        size.local[0] == 0 ? nullptr : size.local.data(), 0, nullptr, nullptr));
}

}  // namespace troika::device::opencl
