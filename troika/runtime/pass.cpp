#include "troika/runtime/pass.h"

#include <algorithm>

#include "troika/base/thread_time.h"
#include "troika/runtime/hang_watch.h"
#include "troika/runtime/pass_account.h"

namespace troika::runtime {
namespace {

Error lost_error(const PassContext& context) {
  const LostDevice& first = context.lost.front();
  return {ErrorCode::kDeviceFailed, first.reason.message};
}

tl::unexpected<Error> cancelled_error() {
  return make_error(ErrorCode::kCancelled, "interrupted in the middle of a pass");
}

// One pass; used once.
class Pass {
 public:
  Pass(Schedule& schedule, PassContext& context)
      : schedule_(schedule), context_(context), watch_(schedule, context) {}

  Status run() {
    const ThreadTime begin;
    const Status submitted = submit();
    const Duration submitting = begin.passed() - waiting_;
    const Status waited = wait();
    ++context_.control.passes;
    context_.control.submit += submitting;
    context_.control.wait += begin.passed() - submitting;
    collect_lost();
    if (!context_.lost.empty()) return tl::unexpected<Error>(lost_error(context_));
    if (watch_.cancelled()) return cancelled_error();
    RETURN_IF_ERROR(submitted);
    RETURN_IF_ERROR(waited);
    account(schedule_, context_);
    ++context_.passes;
    return {};
  }

 private:
  const std::vector<plan::Task>& tasks() const { return schedule_.list.tasks; }

  Status submit() {
    std::vector<device::Fence> waits;
    if (context_.options.sync == Sync::kPredict) queued_.resize(tasks().size());
    for (size_t i = 0; i < tasks().size(); ++i) {
      const plan::Task& task = tasks()[i];
      if (task.stage == graph::Stage::kHead && context_.views.logit_rows() == 0) continue;
      waits.clear();
      for (const int32_t other : task.waits) {
        if (context_.options.sync != Sync::kQueue) {
          RETURN_IF_ERROR(wait_here(static_cast<size_t>(other)));
          if (watch_.cancelled()) return cancelled_error();
        }
        waits.push_back(context_.fences[static_cast<size_t>(other)]);
      }
      device::SubmitOptions options;
      options.delay = task.delay;
      options.may_poll = context_.options.sync != Sync::kBlocking;
      options.spoiled = context_.spoiled.get();
      const device::Bindings bindings{schedule_.bindings[i], &context_.views.block(task.block)};
      const auto device = static_cast<size_t>(task.device);
      if (!queued_.empty()) queued_[i] = system_clock().now();
      auto fence =
          context_.devices[device]->submit(*schedule_.kernels[i], bindings, waits, options);
      if (!fence) {
        context_.spoiled->store(true, std::memory_order_release);
        context_.lose(device, fence.error());
        return tl::unexpected<Error>(std::move(fence.error()));
      }
      context_.fences[i] = *fence;
    }
    return {};
  }

  // The caller's own wait, between submissions.
  Status wait_here(size_t task) {
    const device::Fence& fence = context_.fences[task];
    if (fence.timeline == nullptr || fence.reached()) return {};
    const ThreadTime begin;
    Duration left{};
    if (context_.options.sync == Sync::kPredict) {
      left = schedule_.durations[task] - (system_clock().now() - queued_[task]);
    }
    Status done = watch_.wait(fence, std::max(left, Duration()));
    waiting_ += begin.passed();
    return done;
  }

  // Every fence of every device; the first error.
  Status wait() {
    Status result;
    for (size_t i = tasks().size(); i-- > 0;) {
      if (!context_.is_queued(i) || context_.fences[i].reached()) continue;
      const Status done = watch_.wait(context_.fences[i]);
      if (!done && result) result = done;
    }
    return result;
  }

  void collect_lost() {
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (!context_.is_queued(i) || context_.fences[i].reached()) continue;
      const Status failed = context_.fences[i].wait();
      if (!failed) context_.lose(static_cast<size_t>(tasks()[i].device), failed.error());
    }
  }

  Schedule& schedule_;
  PassContext& context_;
  HangWatch watch_;
  std::vector<TimePoint> queued_;  // by task, with Sync::kPredict
  Duration waiting_{};             // on a core, between submissions
};

}  // namespace

PassContext::PassContext(std::span<const std::unique_ptr<device::Device>> the_devices,
                         const ExecutorOptions& the_options)
    : devices(the_devices),
      options(the_options),
      spoiled(std::make_unique<std::atomic<bool>>(false)),
      work(the_devices.size()),
      paces(the_devices.size()) {
  for (const auto& device : devices) {
    trace.devices.push_back({device->info().name, device->info().description});
  }
}

void PassContext::lose(size_t device, const Error& reason) {
  const bool known = std::any_of(lost.begin(), lost.end(),
                                 [&](const LostDevice& other) { return other.index == device; });
  if (known) return;
  lost.push_back({device, reason});
  if (!devices[device]->lost()) devices[device]->abandon(reason);
}

int64_t PassContext::rows_of(const plan::Task& task) const {
  return task.stage == graph::Stage::kHead ? views.logit_rows() : views.block(task.block).n_rows;
}

int64_t PassContext::macs_of(const plan::Task& task) const {
  return task.macs_per_row * rows_of(task) + task.macs_per_key * views.keys(task.block);
}

Status run_pass(Schedule& schedule, PassContext& context) {
  context.spoiled->store(false, std::memory_order_relaxed);
  context.fences.assign(schedule.list.tasks.size(), {});
  return Pass(schedule, context).run();
}

}  // namespace troika::runtime
