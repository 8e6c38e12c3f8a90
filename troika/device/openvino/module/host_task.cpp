#include "troika/device/openvino/module/host_task.h"

#include "troika/device/cpu/kernels/kernels.h"

namespace troika::device::openvino {
namespace {

Program part_of(const Program& program, const Segment& segment) {
  Program part = program;
  part.ops = segment.ops;
  return part;
}

}  // namespace

HostTask::HostTask(const Program& program, const Segment& segment)
    : graph_(program.graph), kernels_(*cpu::available_kernels().front()) {
  const Program part = part_of(program, segment);
  steps_ = cpu::make_steps(part);
  scratch_.reserve(cpu::scratch_floats(steps_, part, kernels_));
}

void HostTask::run(const Bindings& bindings) {
  cpu::run_steps(steps_, *graph_, kernels_, bindings, scratch_.data());
}

}  // namespace troika::device::openvino
