// Runs operators that look at token ids, positions or block tables, with the cpu kernels on the
// device's worker thread.
#pragma once

#include <vector>

#include "troika/device/cpu/aligned_floats.h"
#include "troika/device/cpu/step.h"
#include "troika/device/openvino/module/segments.h"

namespace troika::device::openvino {

// Threads: one at a time.
class HostTask {
 public:
  // Of both only the program's graph must outlive the task.
  HostTask(const Program& program, const Segment& segment);
  void run(const Bindings& bindings);

 private:
  const graph::Graph* const graph_;
  const cpu::KernelTable& kernels_;
  std::vector<cpu::Step> steps_;
  cpu::AlignedFloats scratch_;
};

}  // namespace troika::device::openvino
