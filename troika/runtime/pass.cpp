#include "troika/runtime/pass.h"

#include <algorithm>

#include "troika/base/thread_time.h"
#include "troika/base/watched_time.h"
#include "troika/plan/default_plan.h"

namespace troika::runtime {
namespace {

// Weight of the newest duration in the running mean is 1 / kDurationMemory.
constexpr int kDurationMemory = 4;
// How often a waiting caller looks whether a device hangs.
constexpr Duration kWatchInterval = std::chrono::milliseconds(50);
// More between two looks was no time in which anything could have been finished.
constexpr Duration kLongestGap = 10 * kWatchInterval;
// Slower than any device that is worth its memory: multiply-adds in a second, for the time that a
// task may take before it counts as hanging.
constexpr double kSlowestMacs = 2e8;
// The patience with a task grows by so many times itself for each second that it may take.
constexpr double kPatiencePerSecond = 2;
// So many times what a task should take by what its device has shown are added to the patience.
constexpr double kTimesShown = 4;
// How long nothing may be finished once the pass is not wanted any more.
constexpr Duration kPatienceIfCancelled = std::chrono::seconds(1);
// Wake-ups of a device that are kept: some hundred tokens' worth.
constexpr size_t kKeptWakeUps = 8192;

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
    quiet_.restart();
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
      if (!is_queued(i) || context_.fences[i].reached()) continue;
      const Status done = watch(context_.fences[i], policy);
      if (!done && result) result = done;
    }
    return result;
  }

  // Waits for as long as anything goes on; then finds out who hangs.
  Status watch(const device::Fence& fence, device::WaitPolicy policy) {
    while (true) {
      Status done = fence.wait(policy);
      if (done || fence.timeline->failed()) return done;
      policy.predicted = Duration::zero();
      const size_t finished = count_finished();
      if (finished != finished_) {
        finished_ = finished;
        quiet_.restart();
        continue;
      }
      const std::vector<size_t> running = find_running();
      const Duration quiet = quiet_.look();
      const bool unwanted = quiet > kPatienceIfCancelled && context_.options.cancelled &&
                            context_.options.cancelled();
      if (!unwanted && quiet <= patience(running)) continue;
      abandon(running, quiet);
      quiet_.restart();
    }
  }

  bool is_over(const device::Fence& fence) const {
    return fence.reached() || fence.timeline->failed();
  }

  size_t count_finished() const {
    return static_cast<size_t>(std::count_if(
        context_.fences.begin(), context_.fences.end(),
        [&](const auto& fence) { return fence.timeline != nullptr && is_over(fence); }));
  }

  // Of each device the first task that is not done, if what it waits for is.
  std::vector<size_t> find_running() const {
    std::vector<bool> seen(context_.devices.size(), false);
    std::vector<size_t> running;
    for (size_t i = 0; i < tasks().size(); ++i) {
      const auto device = static_cast<size_t>(tasks()[i].device);
      if (seen[device] || !is_queued(i) || is_over(context_.fences[i])) continue;
      seen[device] = true;
      const auto& waits = tasks()[i].waits;
      const bool ready = std::all_of(waits.begin(), waits.end(), [&](int32_t other) {
        return is_over(context_.fences[static_cast<size_t>(other)]);
      });
      if (ready) running.push_back(i);
    }
    return running;
  }

  int64_t rows_of(const plan::Task& task) const {
    return task.stage == graph::Stage::kHead ? context_.views.logit_rows()
                                             : context_.views.block(task.block).n_rows;
  }

  int64_t macs(const plan::Task& task) const {
    return task.macs_per_row * rows_of(task) + task.macs_per_key * context_.views.keys(task.block);
  }

  // By what its device has shown in this pass and in those before; 0 if it has shown nothing.
  Duration expected(size_t task) const {
    const auto device = static_cast<size_t>(tasks()[task].device);
    PassContext::Pace pace = context_.paces[device];
    for (size_t i = 0; i < task; ++i) {
      if (static_cast<size_t>(tasks()[i].device) != device) continue;
      if (!is_queued(i) || !context_.fences[i].reached()) continue;
      const device::TaskTimes times = context_.devices[device]->times(context_.fences[i]);
      pace.seconds += to_seconds(times.end - times.start);
      pace.macs += static_cast<double>(macs(tasks()[i]));
    }
    if (pace.macs <= 0) return {};
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
        pace.seconds / pace.macs * static_cast<double>(macs(tasks()[task]))));
  }

  Duration patience(const std::vector<size_t>& running) const {
    double factor = 1;
    Duration shown{};
    Duration delay{};
    for (const size_t i : running) {
      const double seconds = static_cast<double>(macs(tasks()[i])) / kSlowestMacs;
      factor = std::max(factor, 1 + kPatiencePerSecond * seconds);
      delay = std::max(delay, tasks()[i].delay);
      shown = std::max(shown, expected(i));
    }
    const Duration by_work =
        std::chrono::duration_cast<Duration>(factor * context_.options.patience);
    const Duration by_pace =
        context_.options.patience + std::chrono::duration_cast<Duration>(kTimesShown * shown);
    return delay + std::max(by_work, by_pace);
  }

  // All are found out before any is lost: who waits for a lost one would look as if it ran.
  void abandon(const std::vector<size_t>& hanging, Duration after) {
    for (const size_t i : hanging) {
      const auto device = static_cast<size_t>(tasks()[i].device);
      context_.spoiled->store(true, std::memory_order_release);
      context_.lose(device, {ErrorCode::kDeviceFailed,
                             fmt::format("device {} hangs: {} has not finished in {:.1f} s",
                                         context_.devices[device]->info().name, tasks()[i].name,
                                         to_seconds(after))});
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
    const int64_t pass_rows = context_.views.rows();
    if (pass_rows == 1) ++context_.control.decode_passes;
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
      context_.paces[index].seconds += to_seconds(times.end - times.start);
      context_.paces[index].macs += static_cast<double>(macs(task));
      if (times.wait > Duration::zero()) count_join(task, times, work);
      const PartWork did{macs(task), times.end - times.start};
      if (pass_rows == 1) work.decode[static_cast<size_t>(schedule_.parts[i])].add(did);
      if (pass_rows > plan::kManyRows) work.prefill.add(did);
      if (!schedule_.predicted_us.empty()) {
        work.predicted += std::chrono::duration_cast<Duration>(
            std::chrono::duration<double, std::micro>(schedule_.predicted_us[i]));
        work.predicted_busy += times.end - times.start;
      }
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

  void count_join(const plan::Task& task, const device::TaskTimes& times, DeviceWork& work) const {
    ++work.joins;
    work.join_wait += times.wait;
    TimePoint awaited{};
    for (const int32_t other : task.waits) {
      const device::Fence& fence = context_.fences[static_cast<size_t>(other)];
      if (fence.timeline == nullptr) continue;
      const auto device = static_cast<size_t>(tasks()[static_cast<size_t>(other)].device);
      awaited = std::max(awaited, context_.devices[device]->times(fence).end);
    }
    if (work.wake_ups.size() < kKeptWakeUps) work.wake_ups.push_back(times.start - awaited);
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
    event.predicted_us = schedule_.predicted_us.empty()
                             ? to_us(schedule_.usual[index].of(event.rows))
                             : schedule_.predicted_us[index];
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
  size_t finished_ = 0;             // tasks, when last counted
  WatchedTime quiet_{kLongestGap};  // since a task was finished
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

Status run_pass(Schedule& schedule, PassContext& context) { return Pass(schedule, context).run(); }

}  // namespace troika::runtime
