#include "troika/device/openvino/module/host_task.h"

#include "troika/device/cpu/kernels/kernels.h"

namespace troika::device::openvino {
namespace {

constexpr size_t kScratchAlignment = 64;  // what the kernels ask for

Program part_of(const Program& program, const Segment& segment) {
  Program part = program;
  part.ops = segment.ops;
  return part;
}

float* align(float* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return memory +
         (kScratchAlignment - address % kScratchAlignment) % kScratchAlignment / sizeof(float);
}

}  // namespace

HostTask::HostTask(const Program& program, const Segment& segment)
    : graph_(program.graph), kernels_(*cpu::available_kernels().front()) {
  const Program part = part_of(program, segment);
  steps_ = cpu::make_steps(part);
  const int64_t floats = cpu::scratch_floats(steps_, part, kernels_);
  scratch_.resize(static_cast<size_t>(floats) + kScratchAlignment / sizeof(float));
}

void HostTask::run(const Bindings& bindings) {
  cpu::StepContext context;
  context.graph = graph_;
  context.bindings = &bindings;
  context.kernels = &kernels_;
  context.scratch = align(scratch_.data());
  for (const cpu::Step& step : steps_) {
    const int64_t chunks = cpu::chunk_count(step, context);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) cpu::run_chunk(step, context, chunk);
  }
}

}  // namespace troika::device::openvino
