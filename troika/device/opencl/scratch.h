// Memory of the device for what one step leaves to its next launch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"

namespace troika::device::opencl {

// One thread at a time.
class Scratch {
 public:
  explicit Scratch(cl_context context) : context_(context) {}

  // A buffer of so many floats or more; what was there is lost. kOutOfMemory.
  Result<cl_mem> floats(int64_t count) {
    if (count > capacity_) {
      const int64_t capacity = std::max(count, 2 * capacity_);
      cl_int code = CL_SUCCESS;
      BufferHandle larger(api().CreateBuffer(context_, CL_MEM_READ_WRITE,
                                             static_cast<size_t>(capacity) * sizeof(float), nullptr,
                                             &code));
      RETURN_IF_ERROR(check_call("clCreateBuffer", code));
      buffer_ = std::move(larger);
      capacity_ = capacity;
      ++generation_;
    }
    return buffer_.get();
  }
  // Changes with the buffer.
  uint64_t generation() const { return generation_; }

 private:
  cl_context context_;
  BufferHandle buffer_;
  int64_t capacity_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace troika::device::opencl
