#include "troika/device/faulty/faulty_device.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "troika/base/held_values.h"
#include "troika/device/faulty/spoil.h"
#include "troika/device/result_check.h"
#include "troika/device/work_queue.h"
#include "troika/device/wrapped.h"

namespace troika::device::faulty {
namespace {

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

struct FaultyKernel final : Kernel {
  Program program;
  std::vector<std::shared_ptr<const int64_t>> held;  // bytes of weights
  std::unique_ptr<Kernel> wrapped;
};

// The queue's worker hands each task to the wrapped device and waits for it.
class FaultyDevice final : public Device {
 public:
  FaultyDevice(DeviceInfo info, Fault fault, std::unique_ptr<Device> wrapped, const Clock& clock)
      : info_(std::move(info)),
        fault_(std::move(fault)),
        clock_(clock),
        wrapped_(std::move(wrapped)),
        queue_(info_.name, info_.cores, clock, [this](const Kernel& kernel, const Bindings& b) {
          return run(static_cast<const FaultyKernel&>(kernel), b);
        }) {}

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return wrapped_.supports(graph, op);
  }

  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    if (gone_) return gone();
    if (fault_.kind == FaultKind::kCompileHangs && ++compiled_ >= fault_.task) sleep_for_ever();
    RETURN_IF_ERROR(queue_.drain());
    auto kernel = std::make_unique<FaultyKernel>();
    kernel->program = program;
    if (fault_.kind == FaultKind::kOutOfMemory) RETURN_IF_ERROR(hold_weights(*kernel));
    Program shared = program;
    shared.sole_device = false;  // results are looked at, and spoiled, here
    ASSIGN_OR_RETURN(kernel->wrapped, wrapped_.compile(shared));
    return kernel;
  }

  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    if (fault_.kind == FaultKind::kLost && ++submitted_ >= fault_.task) gone_ = true;
    if (gone_) return gone();
    return queue_.submit(kernel, bindings, waits, options);
  }

  TaskTimes times(const Fence& fence) const override { return queue_.times(fence); }

  DeviceStats stats() const override { return wrapped_.added_to(queue_.stats()); }

  void abandon(Error reason) override {
    wrapped_.abandon(reason);
    queue_.abandon(std::move(reason));
  }
  bool lost() const override { return gone_ || queue_.lost(); }
  bool stuck() const override { return queue_.stuck() || wrapped_.stuck(); }

 private:
  tl::unexpected<Error> gone() const {
    return make_error(ErrorCode::kDeviceFailed, "device {} is gone: its driver no longer answers",
                      info_.name);
  }

  Status hold_weights(FaultyKernel& kernel) {
    const Program& program = kernel.program;
    for (const graph::OpId id : program.ops) {
      const graph::Op& op = program.graph->op(id);
      if (op.weight == nullptr) continue;
      const int64_t n = program.graph->tensor(op.output).width;
      const int64_t k = op.inputs.empty() ? 0 : program.graph->tensor(op.inputs[0]).width;
      const graph::WeightSlice part{op.weight, op.n_begin, n, op.k_begin, k};
      auto bytes = weights_.find(part);
      if (bytes == nullptr) {
        bytes = std::make_shared<const int64_t>(graph::weight_bytes(*program.graph, id));
        weights_.keep(part, bytes);
      }
      kernel.held.push_back(std::move(bytes));
    }
    const int64_t needed = weights_.total([](int64_t bytes) { return bytes; });
    if (fault_.bytes > 0 && needed <= fault_.bytes) return {};
    return make_error(ErrorCode::kOutOfMemory,
                      "device {} has no memory left: {} bytes of weights do not fit into {}",
                      info_.name, needed, fault_.bytes);
  }

  Status run(const FaultyKernel& kernel, const Bindings& bindings) {
    ++task_;
    if (fault_.kind == FaultKind::kHang && task_ >= fault_.task) sleep_for_ever();
    const TimePoint begin = clock_.now();
    RETURN_IF_ERROR(wrapped_.run(*kernel.wrapped, bindings));
    if (fault_.kind == FaultKind::kSlow && task_ >= fault_.task) {
      const auto more = (clock_.now() - begin) * (fault_.factor - 1);
      wrapped_.pass_until(clock_.now() + std::chrono::duration_cast<Duration>(more), clock_);
    }
    spoil(kernel.program, bindings);
    return check_finite(info_.name, kernel.program, bindings);
  }

  void spoil(const Program& program, const Bindings& bindings) {
    if (fault_.kind == FaultKind::kWrongValues) distort(program, bindings);
    const bool is_due = task_ >= fault_.task && !planted_;
    if (fault_.kind == FaultKind::kNan && is_due) {
      planted_ = plant(std::numeric_limits<float>::quiet_NaN(), program, bindings);
    } else if (fault_.kind == FaultKind::kInf && is_due) {
      planted_ = plant(std::numeric_limits<float>::infinity(), program, bindings);
    }
  }

  const DeviceInfo info_;
  const Fault fault_;
  const Clock& clock_;
  HeldValues<graph::WeightSlice, const int64_t> weights_;  // kOutOfMemory
  int64_t compiled_ = 0;
  int64_t submitted_ = 0;
  std::atomic<bool> gone_{false};
  Wrapped wrapped_;
  // The worker's own.
  int64_t task_ = 0;
  bool planted_ = false;
  WorkQueue queue_;  // last: its worker uses all of the above
};

DeviceInfo describe(const std::string& name, const Fault& fault, const DeviceInfo& wrapped) {
  DeviceInfo info = wrapped;
  info.name = name;
  info.description = fmt::format("{}, with the fault {}", wrapped.description, fault.text);
  // What is learnt about it must not be held for the wrapped device's.
  info.version = fmt::format("{}, with the fault {}", wrapped.version, fault.text);
  if (fault.bytes > 0) info.capacity_bytes = fault.bytes;
  info.facts.emplace_back("fault", fault.text);
  return info;
}

}  // namespace

Result<std::unique_ptr<Device>> open(const std::string& name, const Fault& fault,
                                     const OpenWrapped& open_wrapped, const Clock& clock) {
  if (fault.kind == FaultKind::kOpenHangs) sleep_for_ever();
  if (fault.kind == FaultKind::kCrashOnOpen) std::abort();
  if (fault.kind == FaultKind::kOpenFails) {
    return make_error(ErrorCode::kDeviceFailed, "device {} cannot be opened: its driver refuses",
                      name);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Device> wrapped, open_wrapped());
  DeviceInfo info = describe(name, fault, wrapped->info());
  try {
    return std::unique_ptr<Device>(
        std::make_unique<FaultyDevice>(std::move(info), fault, std::move(wrapped), clock));
  } catch (const std::system_error& error) {  // from std::thread
    return make_error(ErrorCode::kDeviceFailed, "device {}: no thread can be started: {}", name,
                      error.code().message());
  }
}

}  // namespace troika::device::faulty
