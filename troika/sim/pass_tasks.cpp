#include "troika/sim/pass_tasks.h"

#include <algorithm>
#include <functional>

#include "troika/sim/pass_references.h"

namespace troika::sim {
namespace {

using graph::OpKind;

constexpr int32_t kNoTask = -1;

// What a device does later in a stage, as far as it is looked at from its end.
enum Later : uint8_t { kNothing, kOwnWork, kForOthers };

}  // namespace

void PassGrouper::lay_out() {
  place_.assign(blocks_.size() * static_cast<size_t>(positions_), -1);
  int32_t ops = 0;
  for (size_t i = 0; i < instances_.size(); ++i) {
    CutInstance& instance = instances_[i];
    instance.first_op = ops;
    instance.copied = false;
    ops += static_cast<int32_t>(instance.stage->ops.size());
    if (instance.block == kHeadBlock) continue;
    place_[static_cast<size_t>(instance.block) * static_cast<size_t>(positions_) +
           static_cast<size_t>(instance.position)] = static_cast<int32_t>(i);
  }
  crosses_.assign(static_cast<size_t>(ops), 0);
  ends_.assign(static_cast<size_t>(ops), 0);
  task_of_.assign(static_cast<size_t>(ops), kNoTask);
  tasks_.clear();
  waits_.clear();
  last_op_.clear();
  clocks_.clear();
  number_.clear();
  next_.assign(n_devices_ * n_devices_, 0);
  open_.assign(n_devices_, kNoTask);
  later_.resize(n_devices_);
  later_block_.resize(n_devices_);
}

void PassGrouper::find_crossing() {
  const auto cross = [&](int32_t, int32_t other) { crosses_[static_cast<size_t>(other)] = 1; };
  for (const CutInstance& instance : instances_) {
    const CutStage& stage = *instance.stage;
    for (const OpRef& ref : stage.cross) {
      const int32_t other = place(instance, ref);
      cross(other, instances_[static_cast<size_t>(other)].first_op + ref.op);
    }
    for (const int32_t op : stage.attention) {
      each_kv_writer(instance, stage.ops[static_cast<size_t>(op)], cross);
    }
  }
}

size_t PassGrouper::step_end(size_t first) const {
  size_t end = first;
  while (end < instances_.size() && instances_[end].step == instances_[first].step) ++end;
  return end;
}

// As plan::find_ends(), in the instances of one step.
void PassGrouper::find_ends(size_t first, size_t end) {
  std::fill(later_.begin(), later_.end(), uint8_t{kNothing});
  std::fill(later_block_.begin(), later_block_.end(), -2);
  while (end-- > first) {
    const CutInstance& instance = instances_[end];
    const auto& ops = instance.stage->ops;
    for (size_t i = ops.size(); i-- > 0;) {
      const auto device = static_cast<size_t>(ops[i].device);
      const int32_t block = instance.block == kHeadBlock ? ops[i].block : instance.block;
      if (later_block_[device] != block) later_[device] = kNothing;
      later_block_[device] = block;
      const size_t number = static_cast<size_t>(instance.first_op) + i;
      const bool crosses = crosses_[number] != 0;
      ends_[number] = crosses && later_[device] == kOwnWork ? 1 : 0;
      if (crosses) {
        later_[device] = kForOthers;
      } else if (ops[i].kind == OpKind::kMatMul || ops[i].kind == OpKind::kAttention) {
        later_[device] = kOwnWork;
      }
    }
  }
}

Status PassGrouper::run(std::vector<CutInstance>& instances, std::span<const plan::Block> blocks,
                        int64_t logit_rows) {
  instances_ = instances;
  blocks_ = blocks;
  logit_rows_ = logit_rows;
  lay_out();
  find_crossing();
  find_periods();
  size_t ends_known = 0;
  for (size_t i = 0; i < instances.size();) {
    mark(i);
    const size_t copied = repeats(i);
    if (copied > 0) {
      copy(i, period_[i], static_cast<int32_t>(copied) / period_[i]);
      i += copied;
      continue;
    }
    if (i >= ends_known) {
      ends_known = step_end(i);
      find_ends(i, ends_known);
    }
    RETURN_IF_ERROR(group(instances[i], static_cast<int32_t>(i)));
    ++i;
  }
  return {};
}

Status PassGrouper::group(const CutInstance& instance, int32_t index) {
  const auto count = static_cast<int32_t>(instance.stage->ops.size());
  for (int32_t op = 0; op < count; ++op) RETURN_IF_ERROR(add(instance, index, op));
  return {};
}

bool PassGrouper::known(int32_t other, const int32_t* clock) const {
  const int32_t device = tasks_[static_cast<size_t>(other)].device;
  return clock[device] >= number_[static_cast<size_t>(other)];
}

bool PassGrouper::joins(int32_t step, const CutOp& op, int32_t block, int64_t rows,
                        int32_t task) const {
  const TaskGroup& open = tasks_[static_cast<size_t>(task)];
  if (ends_[static_cast<size_t>(last_op_[static_cast<size_t>(task)])] != 0) return false;
  const bool same_place =
      instances_[static_cast<size_t>(open.instance)].step == step && open.block == block;
  return same_place && open.input_stationary == op.input_stationary &&
         (infos_[static_cast<size_t>(op.device)].standard_rows.empty() || open.max_rows == rows);
}

// A new task of the operator's device, which waits for the tasks in `found_`.
int32_t PassGrouper::open_task(int32_t index, const CutOp& op, int32_t block) {
  const auto device = static_cast<size_t>(op.device);
  const auto task = static_cast<int32_t>(tasks_.size());
  int32_t* const next = &next_[device * n_devices_];
  TaskGroup fresh;
  fresh.device = op.device;
  fresh.instance = index;
  fresh.block = block;
  fresh.input_stationary = op.input_stationary;
  fresh.delay_us = op.delay_us;
  fresh.first_wait = static_cast<int32_t>(waits_.size());
  fresh.original = task;
  clocks_.insert(clocks_.end(), next, next + n_devices_);
  number_.push_back(++next[device]);
  int32_t* const clock = &clocks_[static_cast<size_t>(task) * n_devices_];
  std::sort(found_.begin(), found_.end(), std::greater<>());
  int32_t last = kNoTask;
  for (const int32_t other : found_) {
    if (other == last || known(other, clock)) continue;
    last = other;
    const auto awaited = static_cast<size_t>(other);
    for (size_t d = 0; d < n_devices_; ++d) {
      const int32_t value = clocks_[awaited * n_devices_ + d];
      clock[d] = std::max(clock[d], value);
      next[d] = std::max(next[d], value);
    }
    const auto its = static_cast<size_t>(tasks_[awaited].device);
    clock[its] = std::max(clock[its], number_[awaited]);
    next[its] = std::max(next[its], number_[awaited]);
    waits_.push_back(other);
    if (open_[its] == other) open_[its] = kNoTask;
  }
  std::reverse(waits_.begin() + fresh.first_wait, waits_.end());
  fresh.n_waits = static_cast<int32_t>(waits_.size()) - fresh.first_wait;
  tasks_.push_back(fresh);
  last_op_.push_back(0);
  open_[device] = task;
  return task;
}

Status PassGrouper::add(const CutInstance& instance, int32_t index, int32_t number) {
  const CutOp& op = instance.stage->ops[static_cast<size_t>(number)];
  const auto device = static_cast<size_t>(op.device);
  const bool head = instance.block == kHeadBlock;
  const int32_t own_block = head ? op.block : instance.block;
  const int32_t block = blocks_.size() == 1 ? -1 : own_block;
  const int64_t rows =
      op.wanted_rows ? logit_rows_ : blocks_[static_cast<size_t>(std::max(own_block, 0))].rows;
  const int64_t padded = plan::padded_rows(rows, infos_[device].standard_rows);
  if (padded == 0) {
    return make_error(ErrorCode::kUnsupported, "device {} has no length for {} rows",
                      infos_[device].name, rows);
  }
  const int32_t open = open_[device];
  const auto op_number = static_cast<size_t>(instance.first_op) + static_cast<size_t>(number);
  found_.clear();
  each_cross(instance, op, [&](int32_t, int32_t other_op) {
    const int32_t other = task_of_[static_cast<size_t>(other_op)];
    if (open != kNoTask && known(other, &clocks_[static_cast<size_t>(open) * n_devices_])) return;
    if (!known(other, &next_[device * n_devices_])) found_.push_back(other);
  });
  const bool fresh =
      open == kNoTask || !found_.empty() || !joins(instance.step, op, block, padded, open);
  const int32_t task = fresh ? open_task(index, op, block) : open;
  TaskGroup& own = tasks_[static_cast<size_t>(task)];
  own.max_rows = std::max(own.max_rows, padded);
  last_op_[static_cast<size_t>(task)] = static_cast<int32_t>(op_number);
  task_of_[op_number] = task;
  return {};
}

}  // namespace troika::sim
