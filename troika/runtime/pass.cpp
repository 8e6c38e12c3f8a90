#include "troika/runtime/pass.h"

#include <algorithm>

#include "troika/base/thread_time.h"

namespace troika::runtime {
namespace {

// Weight of the newest duration in the running mean is 1 / kDurationMemory.
constexpr int kDurationMemory = 4;
// How often a waiting caller looks whether a device hangs.
constexpr Duration kWatchInterval = std::chrono::milliseconds(50);
// Slower than any device that is worth its memory: multiply-adds in a second, for the time that a
// task may take before it counts as hanging.
constexpr double kSlowestMacs = 2e8;
constexpr int kPatienceFactor = 20;

Error lost_error(const PassContext& context) {
  const LostDevice& first = context.lost.front();
  return {ErrorCode::kDeviceFailed, first.reason.message};
}

// One pass; used once.
class Pass {
 public:
  Pass(Schedule& schedule, PassContext& context) : schedule_(schedule), context_(context) {}

  Status run() {
    const ThreadTime begin;
    context_.spoiled->store(false, std::memory_order_relaxed);
    context_.fences.assign(tasks().size(), {});
    const Status submitted = submit();
    const Duration submitting = begin.passed();
    const Status waited = wait();
    ++context_.control.passes;
    context_.control.submit += submitting;
    context_.control.wait += begin.passed() - submitting;
    collect_lost();
    if (!context_.lost.empty()) return tl::unexpected<Error>(lost_error(context_));
    RETURN_IF_ERROR(submitted);
    RETURN_IF_ERROR(waited);
    account();
    ++context_.passes;
    return {};
  }

 private:
  const std::vector<plan::Task>& tasks() const { return schedule_.list.tasks; }

  bool is_queued(size_t task) const { return context_.fences[task].timeline != nullptr; }

  Status submit() {
    std::vector<device::Fence> waits;
    for (size_t i = 0; i < tasks().size(); ++i) {
      const plan::Task& task = tasks()[i];
      if (task.stage == graph::Stage::kHead && context_.views.logit_rows() == 0) continue;
      waits.clear();
      for (const int32_t other : task.waits) {
        const device::Fence& fence = context_.fences[static_cast<size_t>(other)];
        if (context_.options.sync != Sync::kQueue) {
          RETURN_IF_ERROR(wait_here(static_cast<size_t>(other)));
        }
        waits.push_back(fence);
      }
      device::SubmitOptions options;
      options.delay = task.delay;
      options.may_poll = context_.options.sync != Sync::kBlocking;
      options.spoiled = context_.spoiled.get();
      const device::Bindings bindings{schedule_.bindings[i], &context_.views.block(task.block)};
      const auto device = static_cast<size_t>(task.device);
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
    device::WaitPolicy policy;
    if (context_.options.sync == Sync::kPredict) policy.predicted = schedule_.durations[task];
    policy.timeout = kWatchInterval;
    return watch(fence, policy);
  }

  // Every fence of every device; the first error.
  Status wait() {
    Status result;
    device::WaitPolicy policy;
    policy.timeout = kWatchInterval;
    for (size_t i = tasks().size(); i-- > 0;) {
      if (!is_queued(i)) continue;
      const Status done = watch(context_.fences[i], policy);
      if (!done && result) result = done;
    }
    return result;
  }

  // Waits for as long as anything goes on; then finds out who hangs.
  Status watch(const device::Fence& fence, device::WaitPolicy policy) {
    TimePoint last_progress = system_clock().now();
    size_t finished = count_finished();
    while (true) {
      Status done = fence.wait(policy);
      if (done || fence.timeline->failed()) return done;
      policy.predicted = Duration::zero();
      const size_t now_finished = count_finished();
      const TimePoint now = system_clock().now();
      if (now_finished != finished) {
        finished = now_finished;
        last_progress = now;
      } else if (now - last_progress > patience()) {
        abandon_hanging(now - last_progress);
        last_progress = now;
      }
    }
  }

  size_t count_finished() const {
    size_t count = 0;
    for (const device::Fence& fence : context_.fences) {
      if (fence.timeline != nullptr && (fence.reached() || fence.timeline->failed())) ++count;
    }
    return count;
  }

  bool is_running(size_t task) const {
    const device::Fence& fence = context_.fences[task];
    if (fence.timeline == nullptr || fence.reached() || fence.timeline->failed()) return false;
    for (const int32_t other : tasks()[task].waits) {
      const device::Fence& before = context_.fences[static_cast<size_t>(other)];
      if (!before.reached() && !before.timeline->failed()) return false;
    }
    return std::none_of(tasks().begin(), tasks().begin() + static_cast<int64_t>(task),
                        [&](const plan::Task& earlier) {
                          const auto index = static_cast<size_t>(&earlier - tasks().data());
                          const device::Fence& before = context_.fences[index];
                          return earlier.device == tasks()[task].device &&
                                 before.timeline != nullptr && !before.reached();
                        });
  }

  int64_t rows_of(const plan::Task& task) const {
    return task.stage == graph::Stage::kHead ? context_.views.logit_rows()
                                             : context_.views.block(task.block).n_rows;
  }

  int64_t macs(const plan::Task& task) const {
    return task.macs_per_row * rows_of(task) + task.macs_per_key * context_.views.keys(task.block);
  }

  Duration patience() const {
    double seconds = 0;
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (!is_running(i)) continue;
      seconds = std::max(seconds, static_cast<double>(macs(tasks()[i])) / kSlowestMacs +
                                      to_seconds(tasks()[i].delay));
    }
    return context_.options.patience +
           std::chrono::duration_cast<Duration>(
               std::chrono::duration<double>(seconds) *
               (context_.options.patience > std::chrono::seconds(1) ? kPatienceFactor : 1));
  }

  // All are found out before any is lost: who waits for a lost one would look as if it ran.
  void abandon_hanging(Duration after) {
    std::vector<LostDevice> hanging;
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (!is_running(i)) continue;
      const auto device = static_cast<size_t>(tasks()[i].device);
      hanging.push_back({device,
                         {ErrorCode::kDeviceFailed,
                          fmt::format("device {} hangs: {} has not finished in {:.1f} s",
                                      context_.devices[device]->info().name, tasks()[i].name,
                                      to_seconds(after))}});
    }
    for (const LostDevice& one : hanging) {
      context_.spoiled->store(true, std::memory_order_release);
      context_.lose(one.index, one.reason);
    }
  }

  void collect_lost() {
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (!is_queued(i) || context_.fences[i].reached()) continue;
      const Status failed = context_.fences[i].wait();
      if (!failed) context_.lose(static_cast<size_t>(tasks()[i].device), failed.error());
    }
  }

  void account() {
    struct Span {
      TimePoint first = TimePoint::max();
      TimePoint last{};
      Duration busy{};
    };
    std::vector<Span> spans(context_.devices.size());
    for (size_t i = 0; i < tasks().size(); ++i) {
      if (!is_queued(i)) continue;
      const plan::Task& task = tasks()[i];
      const auto index = static_cast<size_t>(task.device);
      const device::TaskTimes times = context_.devices[index]->times(context_.fences[i]);
      Duration& usual = schedule_.durations[i];
      const Duration took = times.end - times.queued;
      usual = usual == Duration::zero() ? took : usual + (took - usual) / kDurationMemory;
      DeviceWork& work = context_.work[index];
      work.macs += macs(task);
      ++work.tasks;
      if (times.wait > Duration::zero()) ++work.joins;
      work.join_wait += times.wait;
      spans[index].busy += times.end - times.start;
      spans[index].first = std::min(spans[index].first, times.start);
      spans[index].last = std::max(spans[index].last, times.end);
      context_.control.gather_bytes +=
          task.join_bytes_per_row * context_.views.block(task.block).n_rows;
      if (context_.options.trace) record(i, times);
      schedule_.usual[i].add(rows_of(task), times.end - times.start);
    }
    for (size_t i = 0; i < spans.size(); ++i) {
      if (spans[i].busy == Duration::zero()) continue;
      context_.work[i].busy += spans[i].busy;
      context_.work[i].wait += spans[i].last - spans[i].first - spans[i].busy;
    }
  }

  void record(size_t index, const device::TaskTimes& times) {
    const plan::Task& task = tasks()[index];
    const auto& blocks = schedule_.list.cut->blocks;
    TraceEvent event;
    event.name = task.name;
    event.stage = to_string(task.stage);
    event.device = context_.devices[static_cast<size_t>(task.device)]->info().name;
    event.pass = context_.passes;
    event.layer = task.layer;
    event.sequences = static_cast<int32_t>(context_.views.whole().sequences.size());
    event.rows = rows_of(task);
    event.predicted_us = to_us(schedule_.usual[index].of(event.rows));
    if (task.block != plan::kWholePass) {
      event.chunk = blocks[static_cast<size_t>(task.block)].chunk;
      event.row_begin = blocks[static_cast<size_t>(task.block)].begin;
    }
    event.bytes = task.weight_bytes + task.activation_bytes_per_row * event.rows;
    event.copy_bytes = task.join_bytes_per_row * event.rows;
    event.macs = macs(task);
    event.queued = times.queued;
    event.start = times.start;
    event.end = times.end;
    event.wait = times.wait;
    event.delay = times.delay;
    context_.trace.events.push_back(std::move(event));
  }

  Schedule& schedule_;
  PassContext& context_;
};

}  // namespace

PassContext::PassContext(std::span<const std::unique_ptr<device::Device>> the_devices,
                         const ExecutorOptions& the_options)
    : devices(the_devices),
      options(the_options),
      spoiled(std::make_unique<std::atomic<bool>>(false)),
      work(the_devices.size()) {
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

Status run_pass(Schedule& schedule, PassContext& context) { return Pass(schedule, context).run(); }

}  // namespace troika::runtime
