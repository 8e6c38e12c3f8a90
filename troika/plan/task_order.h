// What is known to be done when a task starts: by the waits of the tasks and the order of queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troika::plan {

// A vector clock per task: for each device, how many of its tasks are done before this one starts.
class TaskOrder {
 public:
  explicit TaskOrder(size_t n_devices) : done_(n_devices, Clock(n_devices, 0)) {}

  // Appends a task to a device's queue; it knows what its predecessor there knew, and that it is
  // done. Returns its number.
  int32_t add(int32_t device);
  // The latest task of its device waits for `other`, too.
  void wait(int32_t task, int32_t other);

  // True if `first` is done before `second` starts, whatever the devices' speed.
  bool before(int32_t first, int32_t second) const;
  // The same for any task that will be added to `device` later.
  bool before_next(int32_t first, int32_t device) const;

  int32_t device(int32_t task) const { return tasks_[static_cast<size_t>(task)].device; }

 private:
  using Clock = std::vector<int32_t>;
  struct Entry {
    int32_t device = 0;
    int32_t number = 0;  // on its device, from 1
    Clock done;
  };
  std::vector<Entry> tasks_;
  std::vector<Clock> done_;  // by device: what the next task there knows
};

}  // namespace troika::plan
