#include "troika/plan/task_order.h"

#include <algorithm>

namespace troika::plan {

int32_t TaskOrder::add(int32_t device) {
  Clock& known = done_[static_cast<size_t>(device)];
  Entry entry;
  entry.device = device;
  entry.done = known;
  entry.number = known[static_cast<size_t>(device)] + 1;
  known[static_cast<size_t>(device)] = entry.number;
  tasks_.push_back(std::move(entry));
  return static_cast<int32_t>(tasks_.size() - 1);
}

void TaskOrder::wait(int32_t task, int32_t other) {
  Entry& waiting = tasks_[static_cast<size_t>(task)];
  const Entry& awaited = tasks_[static_cast<size_t>(other)];
  Clock& next = done_[static_cast<size_t>(waiting.device)];
  const auto learn = [&](size_t device, int32_t number) {
    waiting.done[device] = std::max(waiting.done[device], number);
    next[device] = std::max(next[device], number);
  };
  for (size_t device = 0; device < awaited.done.size(); ++device) {
    learn(device, awaited.done[device]);
  }
  learn(static_cast<size_t>(awaited.device), awaited.number);
}

bool TaskOrder::before(int32_t first, int32_t second) const {
  const Entry& entry = tasks_[static_cast<size_t>(first)];
  return tasks_[static_cast<size_t>(second)].done[static_cast<size_t>(entry.device)] >=
         entry.number;
}

bool TaskOrder::before_next(int32_t first, int32_t device) const {
  const Entry& entry = tasks_[static_cast<size_t>(first)];
  return done_[static_cast<size_t>(device)][static_cast<size_t>(entry.device)] >= entry.number;
}

}  // namespace troika::plan
