// OpenCL's functions, found in the installed loader (libOpenCL.so.1) when first wanted, and its
// objects with owners.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <string_view>
#include <utility>

#include "troika/base/result.h"

namespace troika::device::opencl {

// Every function that is used, without its prefix "cl".
#define TROIKA_OPENCL_FUNCTIONS(X) \
  X(GetPlatformIDs)                \
  X(GetPlatformInfo)               \
  X(GetDeviceIDs)                  \
  X(GetDeviceInfo)                 \
  X(CreateSubDevices)              \
  X(ReleaseDevice)                 \
  X(CreateContext)                 \
  X(ReleaseContext)                \
  X(CreateCommandQueue)            \
  X(ReleaseCommandQueue)           \
  X(CreateBuffer)                  \
  X(ReleaseMemObject)              \
  X(CreateProgramWithSource)       \
  X(CreateProgramWithBinary)       \
  X(BuildProgram)                  \
  X(GetProgramInfo)                \
  X(GetProgramBuildInfo)           \
  X(ReleaseProgram)                \
  X(CreateKernel)                  \
  X(GetKernelInfo)                 \
  X(ReleaseKernel)                 \
  X(SetKernelArg)                  \
  X(GetKernelWorkGroupInfo)        \
  X(EnqueueNDRangeKernel)          \
  X(EnqueueReadBuffer)             \
  X(EnqueueReadBufferRect)         \
  X(EnqueueWriteBuffer)            \
  X(EnqueueWriteBufferRect)        \
  X(EnqueueCopyBuffer)             \
  X(EnqueueMapBuffer)              \
  X(EnqueueUnmapMemObject)         \
  X(EnqueueMarkerWithWaitList)     \
  X(GetEventInfo)                  \
  X(GetEventProfilingInfo)         \
  X(WaitForEvents)                 \
  X(ReleaseEvent)                  \
  X(Flush)                         \
  X(Finish)

struct Api {
#define TROIKA_OPENCL_MEMBER(name) decltype(&::cl##name) name = nullptr;
  TROIKA_OPENCL_FUNCTIONS(TROIKA_OPENCL_MEMBER)
#undef TROIKA_OPENCL_MEMBER
};

// Loads the library at the first call; any thread. kNotFound, with what to install.
Result<const Api*> load_api();
// After a load that succeeded.
const Api& api();
// For tests: another driver behind the same functions. Not while a device is open.
void replace_api(const Api& replacement);

// "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);
// Of a call that failed: "clCreateBuffer failed: ...". kOutOfMemory where the code says so.
Error call_error(std::string_view call, cl_int code);
Status check_call(std::string_view call, cl_int code);

// Owns one reference to an OpenCL object. Release is a functor over the handle.
template <class T, class Release>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != nullptr) Release()(handle_);
  }

  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T handle_ = nullptr;
};

#define TROIKA_OPENCL_HANDLE(Name, type, function)                 \
  struct Name##Release {                                           \
    void operator()(type handle) const { api().function(handle); } \
  };                                                               \
  using Name = Handle<type, Name##Release>;
TROIKA_OPENCL_HANDLE(ContextHandle, cl_context, ReleaseContext)
TROIKA_OPENCL_HANDLE(QueueHandle, cl_command_queue, ReleaseCommandQueue)
TROIKA_OPENCL_HANDLE(BufferHandle, cl_mem, ReleaseMemObject)
TROIKA_OPENCL_HANDLE(ProgramHandle, cl_program, ReleaseProgram)
TROIKA_OPENCL_HANDLE(KernelHandle, cl_kernel, ReleaseKernel)
TROIKA_OPENCL_HANDLE(EventHandle, cl_event, ReleaseEvent)
TROIKA_OPENCL_HANDLE(DeviceHandle, cl_device_id, ReleaseDevice)
#undef TROIKA_OPENCL_HANDLE

}  // namespace troika::device::opencl
