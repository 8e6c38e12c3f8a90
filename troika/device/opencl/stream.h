// An in-order command queue of one OpenCL device, and how kernels are started on it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"
#include "troika/device/opencl/launches.h"

namespace troika::device::opencl {

// Sets a kernel's arguments one after the other; the first error is kept.
class Arguments {
 public:
  // With `launches`, of the next launch there: what is set already is not set again.
  explicit Arguments(cl_kernel kernel, Launches* launches = nullptr) : kernel_(kernel) {
    if (launches != nullptr) kept_ = launches->next(kernel);
    if (kept_ != nullptr) kernel_ = kept_->kernel.get();
  }

  // nullptr: the kernel knows what to take instead.
  Arguments& buffer(cl_mem memory) { return set(sizeof memory, &memory); }
  template <class T>
  Arguments& value(T value) {
    return set(sizeof value, &value);
  }
  Arguments& place(uint64_t elements) { return value(static_cast<cl_ulong>(elements)); }
  Arguments& count(int64_t number) { return value(static_cast<cl_uint>(number)); }
  Arguments& flag(bool on) { return value(static_cast<cl_int>(on ? 1 : 0)); }

  cl_kernel kernel() const { return kernel_; }
  cl_int code() const { return code_; }

 private:
  Arguments& set(size_t size, const void* data) {
    if (kept_ != nullptr) {
      const std::string_view value(static_cast<const char*>(data), size);
      if (kept_->values.size() <= index_) kept_->values.resize(index_ + 1);
      if (kept_->values[index_] == value) {
        ++index_;
        return *this;
      }
      kept_->values[index_] = value;
    }
    const cl_int code = api().SetKernelArg(kernel_, index_++, size, data);
    if (code_ == CL_SUCCESS) code_ = code;
    return *this;
  }

  cl_kernel kernel_;
  Launches::Launch* kept_ = nullptr;
  cl_uint index_ = 0;
  cl_int code_ = CL_SUCCESS;
};

// Sizes of a launch: work-items in all, and in a work-group (0: as the driver likes).
struct LaunchSize {
  std::array<size_t, 2> global{1, 1};
  std::array<size_t, 2> local{0, 0};
};

// Queues a kernel. kDeviceFailed or kOutOfMemory with the code.
Status launch(cl_command_queue queue, const Arguments& arguments, const LaunchSize& size);

}  // namespace troika::device::opencl
