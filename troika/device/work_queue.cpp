#include "troika/device/work_queue.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <utility>

#include "troika/base/cores.h"
#include "troika/base/thread_time.h"
#include "troika/device/kept_tasks.h"

namespace troika::device {
namespace {

// Tasks whose times are kept.
constexpr uint64_t kKeptTimes = kKeptTasks;
static_assert((kKeptTimes & (kKeptTimes - 1)) == 0);
// How often a worker that waits looks whether its own queue is being closed.
constexpr Duration kWaitSlice = std::chrono::milliseconds(20);
// How long abandon() waits for the running task.
constexpr Duration kPatience = std::chrono::seconds(1);
// Waits longer than this are not worth predicting: blocking costs little of them.
constexpr Duration kLongestPrediction = std::chrono::milliseconds(20);
// Shorter ones are polled from the beginning: to wake a sleeping core may take 100 us.
constexpr Duration kShortWait = std::chrono::milliseconds(1);
// Of longer ones so much is polled, because a sleeping core wakes late.
constexpr int kPolledPart = 12;
// Weight of the newest wait in the running mean is 1 / kWaitMemory.
constexpr int kWaitMemory = 4;
// Kernels whose usual wait is kept: more than the plans in use have.
constexpr size_t kMostUsualWaits = 65536;
// Tasks begun ahead of the oldest that is not finished.
constexpr size_t kMostBegun = 4096;

// Timers of this thread go off when they are due: by default Linux may take 50 us longer.
void expect_timers_on_time() {
#if defined(__linux__)
  constexpr unsigned long kSlackNanoseconds = 1000;
  static_cast<void>(prctl(PR_SET_TIMERSLACK, kSlackNanoseconds, 0UL, 0UL, 0UL));
#endif
}

}  // namespace

WorkQueue::WorkQueue(std::string device, std::vector<int> cores, const Clock& clock, Run run,
                     Finish finish, Prepare prepare)
    : device_(std::move(device)),
      clock_(clock),
      run_(std::move(run)),
      finish_(std::move(finish)),
      prepare_(std::move(prepare)),
      timeline_(clock),
      times_(kKeptTimes),
      worker_([this, pinned = std::move(cores)] { work(pinned); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  worker_.join();
}

bool WorkQueue::Task::is_ready() const {
  return std::all_of(waits.begin(), waits.end(),
                     [](const Fence& fence) { return fence.reached(); });
}

tl::unexpected<Error> WorkQueue::closing_error() const {
  return make_error(ErrorCode::kDeviceFailed, "device {} is being closed", device_);
}

bool WorkQueue::is_closing() const {
  const std::lock_guard lock(mutex_);
  return stopping_ || reason_;
}

Result<Fence> WorkQueue::submit(const Kernel& kernel, const Bindings& bindings,
                                std::span<const Fence> waits, const SubmitOptions& options) {
  Fence fence{&timeline_, 0};
  Task task;
  task.kernel = &kernel;
  task.bindings = bindings;
  for (const Fence& wait : waits) {
    // What this queue was given before is done before: it runs in order.
    if (wait.timeline != nullptr && wait.timeline != &timeline_) task.waits.push_back(wait);
  }
  task.options = options;
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return tl::unexpected<Error>(*reason_);
    task.value = ++last_value_;
    fence.value = task.value;
    times_[task.value % kKeptTimes] = {.queued = clock_.now()};
    queue_.push_back(std::move(task));
  }
  arrived_.notify_one();
  return fence;
}

TaskTimes WorkQueue::times(const Fence& fence) const { return times_[fence.value % kKeptTimes]; }

DeviceStats WorkQueue::stats() const {
  const std::lock_guard lock(mutex_);
  DeviceStats stats = stats_;
  stats.cpu = cpu_time_of(worker_);
  return stats;
}

bool WorkQueue::lost() const {
  const std::lock_guard lock(mutex_);
  return reason_.has_value();
}

bool WorkQueue::stuck() const {
  const std::lock_guard lock(mutex_);
  return stuck_;
}

// Once a fence has failed nothing here touches its buffers, unless the queue is stuck.
void WorkQueue::abandon(Error reason) {
  {
    std::unique_lock lock(mutex_);
    if (reason_) {
      reason = *reason_;
    } else {
      reason_ = reason;
    }
    queue_.clear();
    stuck_ = !idle_.wait_for(lock, kPatience, [this] { return !running_; });
  }
  timeline_.fail(std::move(reason));
}

Status WorkQueue::drain() {
  uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return tl::unexpected<Error>(*reason_);
    if (stopping_) return closing_error();
    last = last_value_;
  }
  return timeline_.wait(last);
}

// In slices: a fence that is never reached must not keep this device from being closed.
Status WorkQueue::wait_for_one(const Fence& fence, const WaitPolicy& first) {
  WaitPolicy slice = first;
  Status done = fence.wait(slice);
  slice.predicted = Duration::zero();
  while (!done && done.error().code == ErrorCode::kTimeout && !fence.timeline->failed()) {
    if (is_closing()) return closing_error();
    done = fence.wait(slice);
  }
  return done;
}

Status WorkQueue::wait_for(const Task& task, TaskTimes& times) {
  if (task.is_ready()) return {};
  WaitPolicy policy;
  policy.timeout = kWaitSlice;
  if (usual_waits_.size() > kMostUsualWaits) usual_waits_.clear();
  Duration& usual_wait = usual_waits_[task.kernel];
  const Duration usual = usual_wait;
  if (task.options.may_poll && usual < kLongestPrediction) policy.predicted = usual;
  if (usual < kShortWait) {
    policy.margin = std::max(policy.margin, usual);
    policy.overrun = std::max(policy.overrun, usual);
  } else {
    policy.margin = std::max(policy.margin, usual / kPolledPart);
  }
  const TimePoint begin = clock_.now();
  if (prepare_ && task.options.may_poll) {
    for (int64_t calls = 0; prepare_(*task.kernel, calls) && !task.is_ready(); ++calls) {
    }
  }
  for (const Fence& fence : task.waits) {
    if (policy.predicted > Duration::zero()) {
      const Duration passed = clock_.now() - begin;
      policy.predicted = std::max(usual - passed, Duration(1));
    }
    RETURN_IF_ERROR(wait_for_one(fence, policy));
  }
  times.wait = clock_.now() - begin;
  usual_wait = usual == Duration::zero() ? times.wait : usual + (times.wait - usual) / kWaitMemory;
  const Duration polled_at_most =
      policy.predicted > Duration::zero()
          ? std::min(times.wait, std::min(usual, policy.margin) + policy.overrun)
          : Duration::zero();
  const std::lock_guard lock(mutex_);
  ++stats_.joins;
  stats_.waited += times.wait;
  stats_.polled += polled_at_most;
  return {};
}

// The planned pause, in slices for the same reason.
Status WorkQueue::pause(const Task& task, TaskTimes& times) {
  if (task.options.delay <= Duration::zero()) return {};
  const TimePoint begin = clock_.now();
  const TimePoint until = begin + task.options.delay;
  for (TimePoint now = begin; now < until; now = clock_.now()) {
    if (is_closing()) return closing_error();
    std::this_thread::sleep_for(std::min(until - now, kWaitSlice));
  }
  times.delay = clock_.now() - begin;
  return {};
}

// A device whose task failed is not to be trusted with another.
void WorkQueue::give_up(Error reason) {
  bool closing = false;
  {
    const std::lock_guard lock(mutex_);
    closing = stopping_ || reason_;
    if (!reason_) reason_ = reason;
    queue_.clear();
  }
  if (!closing) timeline_.fail(std::move(reason));
}

void WorkQueue::complete(const Task& task) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.tasks;
  }
  timeline_.signal(task.value);
}

void WorkQueue::process(Task task) {
  TaskTimes& times = times_[task.value % kKeptTimes];
  std::atomic<bool>* spoiled = task.options.spoiled;
  bool sound = pause(task, times) && wait_for(task, times);
  sound = sound && (spoiled == nullptr || !spoiled->load(std::memory_order_acquire));
  if (sound) {
    times.start = clock_.now();
    Status done = run_(*task.kernel, task.bindings);
    times.end = clock_.now();
    if (!done) {
      if (spoiled != nullptr) spoiled->store(true, std::memory_order_release);
      drop_begun();
      return give_up(std::move(done.error()));
    }
    if (finish_) return begun_.push_back(std::move(task));
  } else {
    if (spoiled != nullptr) spoiled->store(true, std::memory_order_release);
    if (is_closing()) return;
    while (!begun_.empty()) finish_oldest();  // fences are reached in order
  }
  complete(task);
}

// Nothing of them may run on once their fences have failed.
void WorkQueue::drop_begun() {
  TaskTimes untold;
  for (const Task& task : begun_) static_cast<void>(finish_(*task.kernel, task.bindings, untold));
  begun_.clear();
}

// In a driver's queue a task starts when the one before it ends, unless the driver knows better;
// but not before it was begun, nor after its end was seen.
void WorkQueue::finish_oldest() {
  const Task task = std::move(begun_.front());
  begun_.pop_front();
  TaskTimes& times = times_[task.value % kKeptTimes];
  TaskTimes told;
  Status done = finish_(*task.kernel, task.bindings, told);
  const TimePoint now = clock_.now();
  times.start = std::max({times.start, last_end_, std::min(told.start, now)});
  times.end = std::max(told.end == TimePoint{} ? now : std::min(told.end, now), times.start);
  last_end_ = times.end;
  if (!done) {
    if (task.options.spoiled != nullptr) {
      task.options.spoiled->store(true, std::memory_order_release);
    }
    drop_begun();
    return give_up(std::move(done.error()));
  }
  complete(task);
}

// Whether the next task may begin before those that were begun are finished. With the lock held.
bool WorkQueue::can_begin() const {
  if (queue_.empty()) return false;
  if (begun_.empty()) return true;
  const Task& next = queue_.front();
  return begun_.size() < kMostBegun && next.options.delay <= Duration::zero() && next.is_ready();
}

void WorkQueue::work(const std::vector<int>& cores) {
  if (!cores.empty()) static_cast<void>(pin_this_thread({cores.data(), 1}));
  expect_timers_on_time();
  while (true) {
    std::optional<Task> task;
    {
      std::unique_lock lock(mutex_);
      running_ = !begun_.empty();
      if (!running_) {
        idle_.notify_all();
        arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      }
      if (stopping_ && begun_.empty()) return;
      if (can_begin() && !stopping_) {
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      running_ = true;
    }
    if (task) {
      process(std::move(*task));
    } else {
      finish_oldest();
    }
  }
}

}  // namespace troika::device
