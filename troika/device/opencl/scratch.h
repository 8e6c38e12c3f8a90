// Memory of the device for what one step leaves to its next launch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/arena.h"

namespace troika::device::opencl {

// One thread at a time.
class Scratch {
 public:
  explicit Scratch(Arena& arena) : arena_(arena) {}

  // Room for so many floats; what was there is lost. kOutOfMemory.
  Result<Place> floats(int64_t count) {
    if (count > capacity_) {
      const int64_t capacity = std::max(count, 2 * capacity_);
      ASSIGN_OR_RETURN(floats_, arena_.take(capacity * static_cast<int64_t>(sizeof(float))));
      capacity_ = capacity;
      ++generation_;
    }
    return floats_.place();
  }
  // So many zeros or more, which whoever changes them leaves as zeros.
  Result<Place> zeros(cl_command_queue queue, int64_t count) {
    if (count > n_zeros_) {
      const std::vector<cl_uint> values(static_cast<size_t>(count));
      const size_t bytes = values.size() * sizeof(cl_uint);
      ASSIGN_OR_RETURN(zeros_, arena_.take(static_cast<int64_t>(bytes)));
      RETURN_IF_ERROR(
          check_call("clEnqueueWriteBuffer",
                     api().EnqueueWriteBuffer(queue, zeros_.get(), CL_TRUE,
                                              static_cast<size_t>(zeros_.begin()), bytes,
                                              values.data(), 0, nullptr, nullptr)));
      n_zeros_ = count;
      ++generation_;
    }
    return zeros_.place();
  }
  // Changes with a place.
  uint64_t generation() const { return generation_; }

 private:
  Arena& arena_;
  Piece floats_;
  int64_t capacity_ = 0;
  Piece zeros_;
  int64_t n_zeros_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace troika::device::opencl
