// WorkQueue: the in-order queue of a device whose tasks run on a thread of this machine. Most
// devices are a WorkQueue and a function that runs a task.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/fence.h"

namespace troika::device {

// Threads: as Device. Implements the device's submit(), times(), abandon(), lost() and stuck().
class WorkQueue {
 public:
  // Runs one task on the worker thread; an error loses the device.
  using Run = std::function<Status(const Kernel&, const Bindings&)>;
  // For drivers with a queue of their own: `run` then only begins a task, and `finish`, called in
  // the same order, waits for its end. Several are begun ahead as long as nothing has to be waited
  // for before. It sets start and end if the driver tells them.
  using Finish = std::function<Status(const Kernel&, const Bindings&, TaskTimes&)>;

  // What can be done for a task before its inputs are there: called while it waits for other
  // devices, `calls` times before, for a microsecond each time, until it returns false: that was
  // all. Not where a wait may not poll.
  using Prepare = std::function<bool(const Kernel&, int64_t calls)>;

  // `device` is the name for messages. The worker is pinned to the first of `cores`, if any.
  WorkQueue(std::string device, std::vector<int> cores, const Clock& clock, Run run,
            Finish finish = nullptr, Prepare prepare = nullptr);
  // Lets the running task end first.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // After a failure, the reason: that of the first task that failed, or of abandon().
  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options);
  TaskTimes times(const Fence& fence) const;
  // `tasks`, `joins`, `waited`, `polled`, and `cpu` of the worker.
  DeviceStats stats() const;
  void abandon(Error reason);
  bool lost() const;
  bool stuck() const;

  // For compile(): waits for everything submitted, so that what tasks share may change; the reason
  // if the device was given up.
  Status drain();

 private:
  struct Task {
    const Kernel* kernel = nullptr;
    Bindings bindings;
    std::vector<Fence> waits;
    SubmitOptions options;
    uint64_t value = 0;

    bool is_ready() const;  // has nothing to wait for
  };

  tl::unexpected<Error> closing_error() const;
  bool is_closing() const;
  void work(const std::vector<int>& cores);
  bool can_begin() const;
  void process(Task task);
  void finish_oldest();
  void drop_begun();
  void complete(const Task& task);
  Status wait_for(const Task& task, TaskTimes& times);
  Status wait_for_one(const Fence& fence, const WaitPolicy& first);
  Status pause(const Task& task, TaskTimes& times);
  void give_up(Error reason);

  const std::string device_;
  const Clock& clock_;
  const Run run_;
  const Finish finish_;
  const Prepare prepare_;
  Timeline timeline_;
  std::vector<TaskTimes> times_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable idle_;
  std::deque<Task> queue_;
  std::deque<Task> begun_;  // by `run_`, not finished; only the worker's
  // How long a kernel's tasks have waited for other devices lately; only the worker's. A new kernel
  // where an old one was begins with its wait.
  std::unordered_map<const Kernel*, Duration> usual_waits_;
  TimePoint last_end_{};  // of the task that was finished last
  DeviceStats stats_;
  uint64_t last_value_ = 0;
  bool running_ = false;  // the worker holds tasks
  bool stopping_ = false;
  std::optional<Error> reason_;  // why nothing is run any more, once the device was given up
  bool stuck_ = false;
  mutable std::thread worker_;  // last: it uses all of the above; mutable for its handle
};

// A device that is a WorkQueue: submit() and what follows from it are the queue's.
class QueuedDevice : public Device {
 public:
  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) final {
    return queue().submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const final { return queue().times(fence); }
  void abandon(Error reason) final { queue().abandon(std::move(reason)); }
  bool lost() const final { return queue().lost(); }
  bool stuck() const final { return queue().stuck(); }

 private:
  // The device's last member, since its worker uses all the others.
  virtual WorkQueue& queue() = 0;
  const WorkQueue& queue() const { return const_cast<QueuedDevice*>(this)->queue(); }
};

}  // namespace troika::device
