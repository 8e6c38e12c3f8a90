// The `systolic` device: an NPU in software. It keeps an NPU's rules - static lengths, tiles of
// 32 x 32 x 32 with padding, a stationary operand, FP16 inputs with FP32 sums - and computes every
// value. Weights in blocks are multiplied as the levels that they store, and a tile's sums with
// their scale. Norms, RoPE, attention and other operators without weights to tile run on the `cpu`
// device's kernels, as on an NPU's vector unit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/systolic/array.h"
#include "troika/device/work_queue.h"

namespace troika::device::systolic {

struct SystolicOptions {
  std::string name = "systolic";
  std::vector<int> cores;  // one to pin the worker to; empty: not pinned
  std::string kernels;     // name of a kernel table; empty: the fastest that this machine runs
};

// Threads: as Device.
class SystolicDevice : public QueuedDevice {
 public:
  // Of all tasks since the device was opened.
  virtual TileCounts counts() const = 0;
};

// kUnsupported for kernels that this machine lacks.
Result<std::unique_ptr<SystolicDevice>> open(const SystolicOptions& options,
                                             const Clock& clock = system_clock());

}  // namespace troika::device::systolic
