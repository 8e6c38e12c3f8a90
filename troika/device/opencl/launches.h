// The launches of one step, kept from run to run: a kernel of its own for each, so that only the
// arguments that changed are set again. Setting one costs a driver about a microsecond, and a token
// has thousands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/opencl/api.h"

namespace troika::device::opencl {

// One thread at a time.
class Launches {
 public:
  struct Launch {
    cl_kernel original = nullptr;
    KernelHandle kernel;
    std::vector<std::string> values;  // by argument, as they were set
  };

  // Before the launches of a run. Another `generation` than before: handles of buffers may have
  // come to mean others, and every argument is set again.
  void begin(uint64_t generation);
  // The next launch of the run; nullptr if the driver makes no second kernel: use the original.
  Launch* next(cl_kernel original);

 private:
  std::vector<Launch> launches_;
  size_t next_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace troika::device::opencl
