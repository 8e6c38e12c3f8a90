#include "troika/device/cpu/cpu_device.h"

#include <new>
#include <system_error>

#include "troika/base/cpu_name.h"
#include "troika/device/cpu/aligned_floats.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/packed_slices.h"
#include "troika/device/cpu/read_ahead.h"
#include "troika/device/cpu/step.h"
#include "troika/device/cpu/team.h"
#include "troika/device/work_queue.h"

namespace troika::device::cpu {
namespace {

// More than any machine has cores: a bound on what is asked of the system.
constexpr int kMaxThreads = 4096;

struct CpuKernel final : Kernel {
  const graph::Graph* graph = nullptr;
  std::vector<Step> steps;
  ReadAhead read_ahead;
};

// The queue's worker runs a task as member 0 of the team.
class CpuDevice final : public QueuedDevice {
 public:
  CpuDevice(DeviceInfo info, const KernelTable& kernels, const std::vector<int>& cores, int threads,
            const Clock& clock)
      : info_(std::move(info)),
        kernels_(kernels),
        team_(threads, cores),
        scratch_(static_cast<size_t>(threads)),
        queue_(
            info_.name, cores, clock,
            [this](const Kernel& kernel, const Bindings& bindings) {
              run(static_cast<const CpuKernel&>(kernel), bindings);
              return Status{};
            },
            nullptr,
            [](const Kernel& kernel, int64_t calls) {
              return static_cast<const CpuKernel&>(kernel).read_ahead.fetch(calls);
            }) {}

  const DeviceInfo& info() const override { return info_; }

  bool supports(const graph::Graph&, graph::OpId) const override { return true; }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    RETURN_IF_ERROR(queue_.drain());  // scratch may move
    auto kernel = std::make_unique<CpuKernel>();
    kernel->graph = program.graph;
    try {
      kernel->steps = make_steps(program);
      packed_.pack(kernel->steps, program);
      // Of several threads none knows what it will read.
      if (program.max_rows <= kFewRows && team_.size() == 1) {
        kernel->read_ahead = ReadAhead(kernel->steps, program);
      }
      const int64_t floats = scratch_floats(kernel->steps, program, kernels_);
      for (AlignedFloats& scratch : scratch_) scratch.reserve(floats);
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::kOutOfMemory,
                        "device {}: no memory is left for passes of {} rows, beside the {} bytes "
                        "that it holds: use a smaller -ub, or a plan without cuts along K",
                        info_.name, program.max_rows, stats().own_bytes);
    }
    return kernel;
  }

  DeviceStats stats() const override {
    DeviceStats stats = queue_.stats();
    stats.cpu += team_.cpu_time();
    stats.own_bytes = packed_.bytes();
    for (const AlignedFloats& scratch : scratch_) stats.own_bytes += scratch.bytes();
    return stats;
  }

 private:
  WorkQueue& queue() override { return queue_; }

  void run(const CpuKernel& kernel, const Bindings& bindings) {
    StepContext shared;
    shared.graph = kernel.graph;
    shared.bindings = &bindings;
    shared.kernels = &kernels_;
    shared.threads = team_.size();
    chunks_.clear();
    for (const Step& step : kernel.steps) chunks_.push_back(chunk_count(step, shared));
    team_.run(chunks_, [&](int member, int step, int64_t chunk) {
      StepContext context = shared;
      context.scratch = scratch_[static_cast<size_t>(member)].data();
      const size_t index = static_cast<size_t>(step);
      context.next_weights = kernel.read_ahead.after(index);
      run_chunk(kernel.steps[index], context, chunk);
    });
  }

  const DeviceInfo info_;
  const KernelTable& kernels_;
  Team team_;
  std::vector<AlignedFloats> scratch_;  // one per thread
  PackedSlices packed_;
  std::vector<int64_t> chunks_;  // of the running task's steps
  WorkQueue queue_;              // last: its worker uses all of the above
};

}  // namespace

Result<std::unique_ptr<Device>> open(const CpuOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(const KernelTable* const kernels, choose_kernels(options.kernels));
  const int threads =
      options.cores.empty() ? options.threads : static_cast<int>(options.cores.size());
  if (threads < 1 || threads > kMaxThreads) {
    return make_error(ErrorCode::kInvalidArgument, "device {}: {} threads; use 1 to {}",
                      options.name, threads, kMaxThreads);
  }
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kCpu;
  info.description = fmt::format("{}, {} thread{}, {} kernels", cpu_name(), threads,
                                 threads == 1 ? "" : "s", kernels->name);
  info.cores = options.cores;
  info.threads = threads;
  info.n_tile = 16;
  info.version = fmt::format("{} kernels", kernels->name);
  info.facts = {{"threads", std::to_string(threads)}, {"kernels", std::string(kernels->name)}};
  try {
    return std::unique_ptr<Device>(
        std::make_unique<CpuDevice>(std::move(info), *kernels, options.cores, threads, clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: {} threads cannot be started: {}",
                      options.name, threads, error.code().message());
  }
}

}  // namespace troika::device::cpu
