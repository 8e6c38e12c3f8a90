// The `opencl` device: any GPU with OpenCL 1.2, or a processor through an OpenCL runtime for it.
// The runtime is looked for when the device is opened; the program needs none to start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device::opencl {

struct OpenClOptions {
  std::string name = "opencl";
  // Which of the machine's OpenCL devices: a number in the order of discovery, or a part of the
  // platform's or device's name ("nvidia", "pocl", "intel"). Empty: the first GPU, else the first.
  std::string instance;
  std::vector<int> cores;  // of this machine, for a runtime that computes on them; empty: any
  std::string cache_dir;   // for compiled kernels; empty: they are compiled anew each time
  // The times of tasks are the device's own, which costs two markers for each.
  bool device_times = false;
  // For tests: the kernel of this name does not compile.
  std::string broken_kernel;
  // For tests on a runtime that has none of them: the kernels of GPUs, memory of the device's own,
  // and weights in the order of matrix units, which are emulated.
  bool gpu_kernels = false;
  bool own_memory = false;
  bool tile_weights = false;
};

// kNotFound without a runtime or a device of that instance, with what was looked for and found.
Result<std::unique_ptr<Device>> open(const OpenClOptions& options,
                                     const Clock& clock = system_clock());

// One line for each OpenCL device of this machine: "opencl:0 NVIDIA H200 (NVIDIA CUDA)". kNotFound
// if there is no runtime.
Result<std::vector<std::string>> list_devices();

}  // namespace troika::device::opencl
