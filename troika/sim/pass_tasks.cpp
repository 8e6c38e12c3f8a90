#include "troika/sim/pass_tasks.h"

#include <algorithm>
#include <functional>

namespace troika::sim {
namespace {

using graph::OpKind;

constexpr int32_t kNoTask = -1;

}  // namespace

const CutInstance& PassGrouper::instance_of(const CutInstance& from, const OpRef& ref) const {
  if (ref.block == kHeadBlock) return instances_.back();
  const int32_t block = ref.block >= 0 ? ref.block : from.block;
  const int32_t position = ref.fixed ? ref.position : ref.position + from.shift;
  const size_t place =
      static_cast<size_t>(block) * static_cast<size_t>(positions_) + static_cast<size_t>(position);
  return instances_[static_cast<size_t>(place_[place])];
}

// Keys of all rows before, and of its own.
template <class Visit>
void PassGrouper::each_kv_writer(const CutInstance& from, const CutOp& op,
                                 const Visit& visit) const {
  for (int32_t block = 0; block <= from.block; ++block) {
    const size_t place = static_cast<size_t>(block) * static_cast<size_t>(positions_) +
                         static_cast<size_t>(from.position - 1);
    const CutInstance& writer = instances_[static_cast<size_t>(place_[place])];
    for (const int32_t i : writer.stage->kv_writers) {
      const plan::Range heads = writer.stage->ops[static_cast<size_t>(i)].heads;
      if (heads.begin < op.heads.end && op.heads.begin < heads.end) visit(writer.first_op + i);
    }
  }
}

void PassGrouper::find_crossing() {
  cross_deps_.clear();
  first_cross_.clear();
  for (const CutInstance& instance : instances_) {
    for (const CutOp& op : instance.stage->ops) {
      first_cross_.push_back(static_cast<int32_t>(cross_deps_.size()));
      const auto cross = [&](int32_t other) {
        if (device_[static_cast<size_t>(other)] == op.device) return;
        crosses_[static_cast<size_t>(other)] = 1;
        cross_deps_.push_back(other);
      };
      for (int32_t d = 0; d < op.n_deps; ++d) {
        cross(op_of(instance, instance.stage->deps[static_cast<size_t>(op.first_dep + d)]));
      }
      if (op.kind == OpKind::kAttention) each_kv_writer(instance, op, cross);
    }
  }
  first_cross_.push_back(static_cast<int32_t>(cross_deps_.size()));
}

// As plan::find_ends().
void PassGrouper::find_ends() {
  enum class Next : uint8_t { kNothing, kOwnWork, kForOthers };
  std::vector<Next> next(infos_.size());
  std::vector<int32_t> block(infos_.size());
  for (const CutInstance& instance : instances_) {
    std::fill(next.begin(), next.end(), Next::kNothing);
    std::fill(block.begin(), block.end(), -2);
    const auto& ops = instance.stage->ops;
    for (size_t i = ops.size(); i-- > 0;) {
      const auto device = static_cast<size_t>(ops[i].device);
      if (block[device] != ops[i].block) next[device] = Next::kNothing;
      block[device] = ops[i].block;
      const size_t number = static_cast<size_t>(instance.first_op) + i;
      const bool crosses = crosses_[number] != 0;
      ends_[number] = crosses && next[device] == Next::kOwnWork ? 1 : 0;
      if (crosses) {
        next[device] = Next::kForOthers;
      } else if (ops[i].kind == OpKind::kMatMul || ops[i].kind == OpKind::kAttention) {
        next[device] = Next::kOwnWork;
      }
    }
  }
}

Status PassGrouper::run(std::vector<CutInstance>& instances, std::span<const plan::Block> blocks,
                        int64_t logit_rows) {
  instances_ = instances;
  blocks_ = blocks;
  logit_rows_ = logit_rows;
  place_.assign(blocks.size() * static_cast<size_t>(positions_), -1);
  device_.clear();
  for (size_t i = 0; i < instances.size(); ++i) {
    CutInstance& instance = instances[i];
    instance.first_op = static_cast<int32_t>(device_.size());
    for (const CutOp& op : instance.stage->ops) device_.push_back(op.device);
    if (instance.block == kHeadBlock) continue;
    place_[static_cast<size_t>(instance.block) * static_cast<size_t>(positions_) +
           static_cast<size_t>(instance.position)] = static_cast<int32_t>(i);
  }
  crosses_.assign(device_.size(), 0);
  ends_.assign(device_.size(), 0);
  task_of_.assign(device_.size(), kNoTask);
  find_crossing();
  find_ends();
  tasks_.clear();
  waits_.clear();
  last_op_.clear();
  clocks_.clear();
  number_.clear();
  next_.assign(infos_.size() * infos_.size(), 0);
  open_.assign(infos_.size(), kNoTask);
  for (size_t i = 0; i < instances.size(); ++i) RETURN_IF_ERROR(group(instances[i], i));
  return {};
}

Status PassGrouper::group(const CutInstance& instance, size_t index) {
  const auto count = static_cast<int32_t>(instance.stage->ops.size());
  for (int32_t op = 0; op < count; ++op) RETURN_IF_ERROR(add(instance, index, op));
  return {};
}

bool PassGrouper::known(int32_t other, const int32_t* clock) const {
  const int32_t device = tasks_[static_cast<size_t>(other)].device;
  return clock[device] >= number_[static_cast<size_t>(other)];
}

bool PassGrouper::joins(const CutInstance& instance, const CutOp& op, int32_t block, int64_t rows,
                        int32_t task) const {
  const TaskGroup& open = tasks_[static_cast<size_t>(task)];
  if (ends_[static_cast<size_t>(last_op_[static_cast<size_t>(task)])] != 0) return false;
  // Steps of a stage follow each other only for different blocks.
  const bool same_place =
      instances_[static_cast<size_t>(open.instance)].position == instance.position &&
      open.block == block;
  return same_place && open.input_stationary == op.input_stationary &&
         (infos_[static_cast<size_t>(op.device)].standard_rows.empty() || open.max_rows == rows);
}

Status PassGrouper::add(const CutInstance& instance, size_t index, int32_t number) {
  const CutOp& op = instance.stage->ops[static_cast<size_t>(number)];
  const auto device = static_cast<size_t>(op.device);
  const size_t n_devices = infos_.size();
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
  found_.clear();
  const auto op_number = static_cast<size_t>(instance.first_op + number);
  for (int32_t d = first_cross_[op_number]; d < first_cross_[op_number + 1]; ++d) {
    const int32_t other = task_of_[static_cast<size_t>(cross_deps_[static_cast<size_t>(d)])];
    if (open != kNoTask && known(other, &clocks_[static_cast<size_t>(open) * n_devices])) continue;
    if (known(other, &next_[device * n_devices])) continue;
    found_.push_back(other);
  }

  int32_t task = open;
  if (open == kNoTask || !found_.empty() || !joins(instance, op, block, padded, open)) {
    task = static_cast<int32_t>(tasks_.size());
    int32_t* const next = &next_[device * n_devices];
    TaskGroup fresh{op.device,   static_cast<int32_t>(index),         block, op.input_stationary, 0,
                    op.delay_us, static_cast<int32_t>(waits_.size()), 0};
    clocks_.insert(clocks_.end(), next, next + n_devices);
    number_.push_back(++next[device]);
    int32_t* const clock = &clocks_[static_cast<size_t>(task) * n_devices];
    std::sort(found_.begin(), found_.end(), std::greater<>());
    int32_t last = kNoTask;
    for (const int32_t other : found_) {
      if (other == last || known(other, clock)) continue;
      last = other;
      const auto awaited = static_cast<size_t>(other);
      for (size_t d = 0; d < n_devices; ++d) {
        const int32_t value = clocks_[awaited * n_devices + d];
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
  }
  TaskGroup& own = tasks_[static_cast<size_t>(task)];
  own.max_rows = std::max(own.max_rows, padded);
  last_op_[static_cast<size_t>(task)] = static_cast<int32_t>(op_number);
  task_of_[op_number] = task;
  return {};
}

}  // namespace troika::sim
