// The `cpu` device: the reference, and a full compute device with its own cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device::cpu {

struct CpuOptions {
  std::string name = "cpu";
  std::vector<int> cores;  // one thread for each; empty: `threads` threads, not pinned
  int threads = 1;
  std::string kernels;  // name of a kernel table; empty: the fastest that this machine runs
};

// kUnsupported if this build or machine lacks the kernels named.
Result<std::unique_ptr<Device>> open(const CpuOptions& options,
                                     const Clock& clock = system_clock());

}  // namespace troika::device::cpu
