#include "troika/device/paced/paced_device.h"

#include <system_error>
#include <utility>

#include "troika/device/work_queue.h"
#include "troika/device/wrapped.h"
#include "troika/soc/execution.h"

namespace troika::device::paced {
namespace {

struct PacedKernel final : Kernel {
  Program program;
  std::unique_ptr<Kernel> wrapped;
};

// The queue's worker hands each task to the wrapped device, waits for it, and then for its time.
class PacedDevice final : public Device {
 public:
  PacedDevice(DeviceInfo info, PacedOptions options, std::unique_ptr<Device> wrapped,
              const Clock& clock)
      : info_(std::move(info)),
        options_(std::move(options)),
        clock_(clock),
        wrapped_(std::move(wrapped)),
        queue_(info_.name, info_.cores, clock, [this](const Kernel& kernel, const Bindings& b) {
          return run(static_cast<const PacedKernel&>(kernel), b);
        }) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return wrapped_.supports(graph, op);
  }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    RETURN_IF_ERROR(queue_.drain());
    auto kernel = std::make_unique<PacedKernel>();
    kernel->program = program;
    const TimePoint begin = clock_.now();
    ASSIGN_OR_RETURN(kernel->wrapped, wrapped_.compile(program));
    if (options_.build_graphs) {
      const double us = soc::build_us(options_.pace.unit, program.max_rows);
      pass_until(begin + stretched(us));
    }
    return kernel;
  }

  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    return queue_.submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const override { return queue_.times(fence); }

  DeviceStats stats() const override { return wrapped_.added_to(queue_.stats()); }

  void abandon(Error reason) override {
    wrapped_.abandon(reason);
    queue_.abandon(std::move(reason));
  }
  bool lost() const override { return queue_.lost(); }
  bool stuck() const override { return queue_.stuck() || wrapped_.stuck(); }

 private:
  Status run(const PacedKernel& kernel, const Bindings& bindings) {
    const TimePoint begin = clock_.now();
    ASSIGN_OR_RETURN(const double us,
                     program_us(options_.pace.unit, kernel.program, *bindings.batch));
    if (options_.compute) RETURN_IF_ERROR(wrapped_.run(*kernel.wrapped, bindings));
    pass_until(begin + options_.task_time + stretched(us));
    return {};
  }

  Duration stretched(double us) const {
    const std::chrono::duration<double, std::micro> takes(us * options_.pace.stretch);
    return std::chrono::duration_cast<Duration>(takes);
  }

  void pass_until(TimePoint until) {
    if (options_.sleep_until) {
      options_.sleep_until(until);
    } else {
      wrapped_.pass_until(until, clock_);
    }
  }

  const DeviceInfo info_;
  const PacedOptions options_;
  const Clock& clock_;
  Wrapped wrapped_;
  WorkQueue queue_;  // last: its worker uses all of the above
};

DeviceInfo describe(const PacedOptions& options, const DeviceInfo& wrapped) {
  DeviceInfo info = wrapped;
  info.name = options.name;
  info.description =
      fmt::format("{}, paced to {} of {}, times stretched by {}", wrapped.description,
                  options.pace.unit.name, options.pace.chip, options.pace.stretch);
  info.version = fmt::format("{}, paced to {}.{} by {}", wrapped.version, options.pace.chip,
                             options.pace.unit.name, options.pace.stretch);
  info.facts.emplace_back("pace", fmt::format("{} of {}, stretched by {}", options.pace.unit.name,
                                              options.pace.chip, options.pace.stretch));
  return info;
}

}  // namespace

Result<std::unique_ptr<Device>> open(PacedOptions options, std::unique_ptr<Device> wrapped,
                                     const Clock& clock) {
  DeviceInfo info = describe(options, wrapped->info());
  try {
    return std::unique_ptr<Device>(std::make_unique<PacedDevice>(
        std::move(info), std::move(options), std::move(wrapped), clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "a paced device: no thread can be started: {}",
                      error.code().message());
  }
}

}  // namespace troika::device::paced
