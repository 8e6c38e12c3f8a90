#include "troika/runtime/hang_watch.h"

#include <algorithm>

namespace troika::runtime {
namespace {

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
// With a pass that is not wanted any more: so long, or kTimesShown times what the task should take.
constexpr Duration kPatienceIfCancelled = std::chrono::seconds(1);

Duration times(double factor, Duration time) {
  return std::chrono::duration_cast<Duration>(factor * time);
}

bool is_over(const device::Fence& fence) { return fence.reached() || fence.timeline->failed(); }

}  // namespace

HangWatch::HangWatch(const Schedule& schedule, PassContext& context)
    : schedule_(schedule), context_(context), quiet_(kLongestGap) {}

Status HangWatch::wait(const device::Fence& fence, Duration predicted) {
  const TimePoint end = system_clock().now() + predicted;
  device::WaitPolicy policy;
  policy.timeout = kWatchInterval;
  while (true) {
    // What is still far off is slept for in intervals, as if it were not known.
    const Duration left = predicted > Duration::zero() ? end - system_clock().now() : Duration();
    policy.predicted = left < kWatchInterval ? std::max(left, Duration()) : Duration();
    Status done = fence.wait(policy);
    if (done || fence.timeline->failed()) return done;
    look();
  }
}

// Waits for as long as anything goes on; then finds out who hangs.
void HangWatch::look() {
  if (!cancelled_ && context_.options.cancelled && context_.options.cancelled()) {
    cancelled_ = true;
    context_.spoiled->store(true, std::memory_order_release);
  }
  const size_t finished = count_finished();
  if (finished != finished_) {
    finished_ = finished;
    quiet_.restart();
    return;
  }
  const std::vector<size_t> running = find_running();
  const Duration quiet = quiet_.look();
  // Devices may hold each other up, as on one core, so that the most patient one decides for all.
  Duration longest = context_.options.patience;
  for (const size_t i : running) longest = std::max(longest, patience(i));
  std::vector<size_t> hanging;
  for (const size_t i : running) {
    if (quiet > longest || (cancelled_ && quiet > patience_if_cancelled(i))) hanging.push_back(i);
  }
  if (hanging.empty()) return;
  abandon(hanging, quiet);
  quiet_.restart();
}

size_t HangWatch::count_finished() const {
  return static_cast<size_t>(
      std::count_if(context_.fences.begin(), context_.fences.end(),
                    [](const auto& fence) { return fence.timeline != nullptr && is_over(fence); }));
}

// Of each device the first task that is not done, if what it waits for is.
std::vector<size_t> HangWatch::find_running() const {
  const std::vector<plan::Task>& tasks = schedule_.list.tasks;
  std::vector<bool> seen(context_.devices.size(), false);
  std::vector<size_t> running;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto device = static_cast<size_t>(tasks[i].device);
    if (seen[device] || !context_.is_queued(i) || is_over(context_.fences[i])) continue;
    seen[device] = true;
    const auto& waits = tasks[i].waits;
    const bool ready = std::all_of(waits.begin(), waits.end(), [&](int32_t other) {
      return is_over(context_.fences[static_cast<size_t>(other)]);
    });
    if (ready) running.push_back(i);
  }
  return running;
}

// By what its device has shown in this pass and in those before; nothing if it has shown nothing.
std::optional<Duration> HangWatch::expected(size_t task) const {
  const std::vector<plan::Task>& tasks = schedule_.list.tasks;
  const auto device = static_cast<size_t>(tasks[task].device);
  PassContext::Pace pace = context_.paces[device];
  for (size_t i = 0; i < task; ++i) {
    if (static_cast<size_t>(tasks[i].device) != device) continue;
    if (!context_.is_queued(i) || !context_.fences[i].reached()) continue;
    const device::TaskTimes times = context_.devices[device]->times(context_.fences[i]);
    pace.seconds += to_seconds(times.end - times.start);
    pace.macs += static_cast<double>(context_.macs_of(tasks[i]));
  }
  if (pace.macs <= 0) return {};
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      pace.seconds / pace.macs * static_cast<double>(context_.macs_of(tasks[task]))));
}

// For a device that is as slow as can be.
Duration HangWatch::patience_by_work(size_t task) const {
  const auto macs = static_cast<double>(context_.macs_of(schedule_.list.tasks[task]));
  return times(1 + kPatiencePerSecond * macs / kSlowestMacs, context_.options.patience);
}

Duration HangWatch::patience(size_t task) const {
  const Duration by_pace =
      context_.options.patience + times(kTimesShown, expected(task).value_or(Duration()));
  return schedule_.list.tasks[task].delay + std::max(patience_by_work(task), by_pace);
}

Duration HangWatch::patience_if_cancelled(size_t task) const {
  const std::optional<Duration> shown = expected(task);
  return schedule_.list.tasks[task].delay +
         (shown ? std::max(kPatienceIfCancelled, times(kTimesShown, *shown))
                : patience_by_work(task));
}

// All are found out before any is lost: who waits for a lost one would look as if it ran.
void HangWatch::abandon(const std::vector<size_t>& hanging, Duration after) {
  const std::vector<plan::Task>& tasks = schedule_.list.tasks;
  for (const size_t i : hanging) {
    const auto device = static_cast<size_t>(tasks[i].device);
    context_.spoiled->store(true, std::memory_order_release);
    context_.lose(device, {ErrorCode::kDeviceFailed,
                           fmt::format("device {} hangs: {} has not finished in {:.1f} s",
                                       context_.devices[device]->info().name, tasks[i].name,
                                       to_seconds(after))});
  }
}

}  // namespace troika::runtime
