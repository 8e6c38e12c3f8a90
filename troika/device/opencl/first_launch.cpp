#include "troika/device/opencl/first_launch.h"

namespace troika::device::opencl {
namespace {

// Zero, or a buffer, whatever the argument takes. An offset, as large as a handle, gets the
// buffer's, which does not matter to a kernel that reads nothing.
cl_int set_nothing(cl_kernel kernel, cl_uint index, cl_mem buffer) {
  constexpr cl_uint4 kZeros{};
  cl_int code = api().SetKernelArg(kernel, index, sizeof(cl_uint), &kZeros);
  if (code != CL_SUCCESS) code = api().SetKernelArg(kernel, index, sizeof buffer, &buffer);
  if (code != CL_SUCCESS) code = api().SetKernelArg(kernel, index, sizeof kZeros, &kZeros);
  return code;
}

}  // namespace

Status first_launch(cl_context context, cl_command_queue queue, cl_kernel kernel,
                    const std::array<size_t, 2>& local) {
  cl_uint count = 0;
  RETURN_IF_ERROR(
      check_call("clGetKernelInfo",
                 api().GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr)));
  cl_int code = CL_SUCCESS;
  constexpr size_t kBytes = 4096;
  const BufferHandle buffer(api().CreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, &code));
  RETURN_IF_ERROR(check_call("clCreateBuffer", code));
  for (cl_uint i = 0; i < count; ++i) {
    RETURN_IF_ERROR(check_call("clSetKernelArg", set_nothing(kernel, i, buffer.get())));
  }
  RETURN_IF_ERROR(check_call("clEnqueueNDRangeKernel",
                             api().EnqueueNDRangeKernel(queue, kernel, 2, nullptr, local.data(),
                                                        local.data(), 0, nullptr, nullptr)));
  return check_call("clFinish", api().Finish(queue));
}

}  // namespace troika::device::opencl
