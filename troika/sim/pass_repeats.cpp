// Layers that repeat the one before them. How an operator joins a task, and what a task waits for,
// depends on the operators before it only through numbers of tasks. So if the tasks of two layers
// are the same but for numbers that rose by as many as tasks were made, and a third layer has the
// same operators, its tasks are those of the second with the same rise.
#include <algorithm>
#include <cstring>

#include "troika/sim/pass_references.h"

namespace troika::sim {
void PassGrouper::find_periods() {
  period_.assign(instances_.size(), 0);
  run_.assign(instances_.size(), 0);
  for (size_t i = 0; i < instances_.size(); ++i) {
    const CutInstance& own = instances_[i];
    const bool in_layers = own.block != kHeadBlock && own.position > layer_;
    if (!in_layers) continue;
    const int32_t before = place(own.block, own.position - layer_);
    if (before < 0 || static_cast<size_t>(before) >= i) continue;
    const CutInstance& other = instances_[static_cast<size_t>(before)];
    if (other.stage != own.stage || other.shift + layer_ != own.shift) continue;
    if (std::memcmp(&crosses_[static_cast<size_t>(own.first_op)],
                    &crosses_[static_cast<size_t>(other.first_op)], own.stage->ops.size()) != 0) {
      continue;
    }
    period_[i] = static_cast<int32_t>(i) - before;
  }
  // Where a task ends depends on the rest of its step: only whole ones are repeated.
  for (size_t first = 0; first < instances_.size();) {
    const size_t end = step_end(first);
    const int32_t period = period_[first];
    const bool same = std::all_of(period_.begin() + static_cast<std::ptrdiff_t>(first),
                                  period_.begin() + static_cast<std::ptrdiff_t>(end),
                                  [period](int32_t own) { return own == period; });
    for (; first < end; ++first) {
      if (!same) period_[first] = 0;
      if (period_[first] == 0) continue;
      run_[first] = period_[first - 1] == period_[first] ? run_[first - 1] + 1 : 1;
    }
  }
  marks_.resize(instances_.size());
  marked_next_.resize(instances_.size() * n_devices_ * n_devices_);
  marked_open_.resize(instances_.size() * n_devices_);
}

void PassGrouper::mark(size_t index) {
  marks_[index] = {static_cast<int32_t>(tasks_.size()), static_cast<int32_t>(waits_.size())};
  std::copy(next_.begin(), next_.end(),
            marked_next_.begin() + static_cast<std::ptrdiff_t>(index * next_.size()));
  std::copy(open_.begin(), open_.end(),
            marked_open_.begin() + static_cast<std::ptrdiff_t>(index * open_.size()));
}

// Tasks that a device got in the period that ends before an instance.
int32_t PassGrouper::made(size_t index, int32_t period, size_t device) const {
  return next_at(index, device, device) -
         next_at(index - static_cast<size_t>(period), device, device);
}

// How many instances from this one on are copies: whole periods.
size_t PassGrouper::repeats(size_t index) const {
  const int32_t period = period_[index];
  // Two periods before it that are alike, and so aligned that each is looked at once.
  if (period == 0 || run_[index] <= period || (run_[index] - 1) % period != 0) return 0;
  size_t end = index;
  while (end < instances_.size() && period_[end] == period) ++end;
  const auto count = static_cast<int32_t>(end - index) / period;
  if (count == 0) return 0;
  for (size_t i = index - 2 * static_cast<size_t>(period); i < index; ++i) {
    if (instances_[i].copied) return 0;
  }
  const bool same = same_state(index, period) && same_tasks(index, period) &&
                    far_ones_known(index, period, count);
  return same ? static_cast<size_t>(count * period) : 0;
}

// What holds before the instance is what held a period before it, risen.
bool PassGrouper::same_state(size_t index, int32_t period) const {
  const size_t before = index - static_cast<size_t>(period);
  const int32_t tasks = marks_[index].tasks - marks_[before].tasks;
  for (size_t d = 0; d < n_devices_; ++d) {
    if (made(index, period, d) == 0) continue;  // it does nothing in these layers
    const int32_t open = marked_open_[index * n_devices_ + d];
    const int32_t other = marked_open_[before * n_devices_ + d];
    if (open != (other < 0 ? other : other + tasks)) return false;
    for (size_t e = 0; e < n_devices_; ++e) {
      if (next_at(index, d, e) != next_at(before, d, e) + made(index, period, e)) return false;
    }
  }
  return true;
}

// The tasks of the last period are those of the one before it, risen.
bool PassGrouper::same_tasks(size_t index, int32_t period) const {
  const size_t b = index - static_cast<size_t>(period);
  const size_t a = b - static_cast<size_t>(period);
  const int32_t tasks = marks_[index].tasks - marks_[b].tasks;
  const int32_t waits = marks_[index].waits - marks_[b].waits;
  if (marks_[b].tasks - marks_[a].tasks != tasks || marks_[b].waits - marks_[a].waits != waits) {
    return false;
  }
  for (auto t = static_cast<size_t>(marks_[b].tasks); t < static_cast<size_t>(marks_[index].tasks);
       ++t) {
    const size_t other = t - static_cast<size_t>(tasks);
    const TaskGroup& own = tasks_[t];
    const TaskGroup& its = tasks_[other];
    const bool same = own.device == its.device && own.instance == its.instance + period &&
                      own.block == its.block && own.input_stationary == its.input_stationary &&
                      own.max_rows == its.max_rows && own.delay_us == its.delay_us &&
                      own.n_waits == its.n_waits && own.first_wait == its.first_wait + waits;
    if (!same) return false;
    for (size_t d = 0; d < n_devices_; ++d) {
      if (clocks_[t * n_devices_ + d] != clocks_[other * n_devices_ + d] + made(index, period, d)) {
        return false;
      }
    }
  }
  for (auto w = static_cast<size_t>(marks_[b].waits); w < static_cast<size_t>(marks_[index].waits);
       ++w) {
    if (waits_[w] != waits_[w - static_cast<size_t>(waits)] + tasks) return false;
  }
  const int32_t ops = instances_[b].first_op - instances_[a].first_op;
  for (int32_t op = instances_[b].first_op; op < instances_[index].first_op; ++op) {
    if (task_of_[static_cast<size_t>(op)] != task_of_[static_cast<size_t>(op - ops)] + tasks) {
      return false;
    }
  }
  return true;
}

// The instance `layers` layers after one of the same stage all the way; itself if it belongs to no
// layer; -1: there is none.
int32_t PassGrouper::last_like(int32_t index, int32_t layers) const {
  const CutInstance& first = instances_[static_cast<size_t>(index)];
  if (first.position == 0) return index;
  int32_t last = index;
  for (int32_t layer = 1; layer <= layers; ++layer) {
    last = place(first.block, first.position + layer_ * layer);
    if (instances_[static_cast<size_t>(last)].stage != first.stage) return -1;
  }
  return last;
}

// What is read from before the two periods was known when the second began, up to what the last
// copy reads.
bool PassGrouper::far_ones_known(size_t index, int32_t period, int32_t count) const {
  const size_t b = index - static_cast<size_t>(period);
  const auto a = static_cast<int32_t>(b) - period;
  bool known = true;
  for (size_t i = b; i < index && known; ++i) {
    const CutInstance& instance = instances_[i];
    for (const CutOp& op : instance.stage->ops) {
      each_cross(instance, op, [&](int32_t from, int32_t other_op) {
        if (from >= a) return;
        const CutInstance& far = instances_[static_cast<size_t>(from)];
        const int32_t last = last_like(from, count);
        if (last < 0 || last >= static_cast<int32_t>(b)) {
          known = false;
          return;
        }
        const int32_t last_op =
            other_op + instances_[static_cast<size_t>(last)].first_op - far.first_op;
        const auto task = static_cast<size_t>(task_of_[static_cast<size_t>(last_op)]);
        const auto device = static_cast<size_t>(tasks_[task].device);
        known = known && next_at(b, static_cast<size_t>(op.device), device) >= number_[task];
      });
    }
  }
  return known;
}

void PassGrouper::copy(size_t index, int32_t period, int32_t count) {
  const size_t b = index - static_cast<size_t>(period);
  const size_t tasks = tasks_.size() - static_cast<size_t>(marks_[b].tasks);
  const size_t waits = waits_.size() - static_cast<size_t>(marks_[b].waits);
  const int32_t ops = instances_[index].first_op - instances_[b].first_op;
  const auto rise = static_cast<int32_t>(tasks);
  made_.resize(n_devices_);
  for (size_t d = 0; d < n_devices_; ++d) made_[d] = made(index, period, d);
  const size_t first_task = tasks_.size();
  const size_t end_task = first_task + tasks * static_cast<size_t>(count);
  tasks_.resize(end_task);
  number_.resize(end_task);
  last_op_.resize(end_task);
  clocks_.resize(end_task * n_devices_);
  for (size_t t = first_task; t < end_task; ++t) {
    TaskGroup& task = tasks_[t];
    task = tasks_[t - tasks];
    task.instance += period;
    task.first_wait += static_cast<int32_t>(waits);
    number_[t] = number_[t - tasks] + made_[static_cast<size_t>(task.device)];
    last_op_[t] = last_op_[t - tasks] + ops;
    const int32_t* const from = &clocks_[(t - tasks) * n_devices_];
    int32_t* const to = &clocks_[t * n_devices_];
    for (size_t d = 0; d < n_devices_; ++d) to[d] = from[d] + made_[d];
  }
  const size_t first_wait = waits_.size();
  waits_.resize(first_wait + waits * static_cast<size_t>(count));
  for (size_t w = first_wait; w < waits_.size(); ++w) waits_[w] = waits_[w - waits] + rise;
  const auto begin = static_cast<size_t>(instances_[index].first_op);
  const size_t end = begin + static_cast<size_t>(ops * count);
  for (size_t op = begin; op < end; ++op) {
    task_of_[op] = task_of_[op - static_cast<size_t>(ops)] + rise;
    ends_[op] = ends_[op - static_cast<size_t>(ops)];
  }
  for (size_t i = index; i < index + static_cast<size_t>(period * count); ++i) {
    instances_[i].copied = true;
  }
  for (size_t d = 0; d < n_devices_; ++d) {
    if (made_[d] == 0) continue;
    for (size_t e = 0; e < n_devices_; ++e) next_[d * n_devices_ + e] += count * made_[e];
    if (open_[d] >= 0) open_[d] += count * rise;
  }
}

}  // namespace troika::sim
