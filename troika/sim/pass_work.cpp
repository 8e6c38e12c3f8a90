// What the tasks of a cut pass need: work, memory, energy and switches.
#include <algorithm>
#include <chrono>

#include "troika/sim/pass_state.h"

namespace troika::sim {

using graph::OpKind;

std::optional<cost::Estimate> PassScheduler::State::estimate(const CutOp& op, const TaskGroup& task,
                                                             bool is_head, int64_t rows) {
  const auto device = static_cast<size_t>(op.device);
  int64_t begin = 0;
  int64_t count = rows;
  if (task.block >= 0) {
    begin = blocks[static_cast<size_t>(task.block)].begin;
    count = blocks[static_cast<size_t>(task.block)].rows;
  }
  const double keys =
      static_cast<double>(options.depth + begin) + (static_cast<double>(count) + 1) / 2;
  if (is_head) count = std::min(options.logit_rows, rows);
  if (op.kind == OpKind::kMatMul) {
    const int64_t padded = computed_rows(options, device, count);
    const ProductKey key{op.device, padded, op.n, op.k, op.weight_bits, op.input_stationary};
    const auto [found, is_new] = products.try_emplace(key);
    if (is_new) {
      found->second =
          product_cost(cost, device, padded, op.n, op.k, op.weight_bits, op.input_stationary);
    }
    return found->second;
  }
  const double width_bytes = options.activation_bits > 0
                                 ? static_cast<double>(op.width) * (options.activation_bits / 8)
                                 : op.width_bytes;
  const double moved = width_bytes * static_cast<double>(count);
  if (op.kind != OpKind::kAttention) return cost.elementwise(device, moved);
  return attention_cost(cost, device, count, keys, op.head_width, op.group, moved);
}

// From the last product on the operator's device to it, us.
double PassScheduler::State::switch_to(const CutInstance& instance, const CutOp& op, int32_t path) {
  const auto device = static_cast<size_t>(op.device);
  const cost::RunFacts& own = facts[device];
  if (own.datapath_switch_us == 0 && own.weights_switch_us == 0) return 0;
  // The same product of another layer is another weight; layers have theirs in the same order.
  const auto cut_at = static_cast<size_t>(instance.position - instance.shift);
  const int64_t number = op.product - layout->ops[cut_at].front();
  const Place next{path, (int64_t{instance.position} << 32) + number, op.n_begin, op.n, op.k_begin,
                   op.k};
  const double us = switch_us(own, last_product[device], next);
  last_product[device] = next;
  return us;
}

// What the operators of an instance need. Blocks of as many rows differ in attention alone.
Result<const PassScheduler::State::StageCost*> PassScheduler::State::cost_of(
    const CutInstance& instance, int64_t rows) {
  const bool is_head = instance.block == kHeadBlock;
  const size_t block = is_head ? 0 : static_cast<size_t>(instance.block);
  StageCost* const all = &stage_costs[static_cast<size_t>(instance.stage->number) * blocks.size()];
  StageCost& own = all[block];
  if (own.known) return &own;
  const StageCost* like = nullptr;
  for (size_t b = 0; b < blocks.size() && !is_head; ++b) {
    if (all[b].known && blocks[b].rows == blocks[block].rows) like = &all[b];
  }
  for (size_t i = 0; i < instance.stage->ops.size(); ++i) {
    const CutOp& op = instance.stage->ops[i];
    if (like != nullptr && op.kind != OpKind::kAttention) {
      own.work.push_back(like->work[i]);
      continue;
    }
    const auto task =
        static_cast<size_t>(layout->grouper->task_of(instance.first_op + static_cast<int32_t>(i)));
    const auto work = estimate(op, layout->grouper->tasks()[task], is_head, rows);
    if (!work) {
      return make_error(ErrorCode::kUnsupported, "{} cannot have {}",
                        cost.devices()[static_cast<size_t>(op.device)].name, to_string(op.kind));
    }
    Needed one;
    one.add(*work, facts[static_cast<size_t>(op.device)]);
    own.work.emplace_back(one, work->path);
  }
  own.known = true;
  return &own;
}

Status PassScheduler::State::add_work(int64_t rows) {
  needed.assign(layout->grouper->tasks().size(), {});
  switches_us.assign(layout->grouper->tasks().size(), 0);
  last_product.assign(infos.size(), {});
  for (StageCost& one : stage_costs) {
    one.known = false;
    one.work.clear();
  }
  stage_costs.resize((stages.size() + 1) * blocks.size());
  for (const CutInstance& instance : instances) {
    // A copy only matters to what is switched after it.
    if (instance.copied && !switches) continue;
    ASSIGN_OR_RETURN(const StageCost* const costs, cost_of(instance, rows));
    for (size_t i = 0; i < costs->work.size(); ++i) {
      const auto& [work, path] = costs->work[i];
      const double us = path < 0 ? 0 : switch_to(instance, instance.stage->ops[i], path);
      if (instance.copied) continue;
      const auto task = static_cast<size_t>(
          layout->grouper->task_of(instance.first_op + static_cast<int32_t>(i)));
      needed[task].add(work);
      switches_us[task] += us;
    }
  }
  return {};
}

Status PassScheduler::State::fill(int64_t rows, PassSchedule& out) {
  RETURN_IF_ERROR(add_work(rows));
  // What is the chip's; of the tasks only those that are no copies are looked at, and what they
  // wait for is earlier by construction.
  RETURN_IF_ERROR(check(chip));
  const auto& tasks = layout->grouper->tasks();
  Schedule& schedule = out.schedule;
  schedule.n_devices = chip.n_devices;
  schedule.shared_gbps = chip.shared_gbps;
  schedule.runs = chip.runs;
  schedule.idle_w = chip.idle_w;
  schedule.turbo_mj = chip.turbo_mj;
  schedule.waits = layout->grouper->waits();
  schedule.tasks.resize(tasks.size());
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskGroup& from = tasks[t];
    Task& task = schedule.tasks[t];
    const auto original = static_cast<size_t>(from.original);
    if (original != t) {
      task = schedule.tasks[original];
      task.first_wait = from.first_wait;
      continue;
    }
    task = {};
    task.device = from.device;
    task.first_wait = from.first_wait;
    task.n_waits = from.n_waits;
    const auto delay = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::micro>(from.delay_us));
    task.delay_us = static_cast<float>(to_us(delay));
    const auto device = static_cast<size_t>(from.device);
    set_work(cost, device, options.sync, needed[t], switches_us[t], !schedule.waits.empty(), task);
    if (!has_sound_numbers(task)) {
      return make_error(ErrorCode::kInvalidData,
                        "{}: a time, a demand or a power of a task is negative or not finite",
                        cost.devices()[device].name);
    }
  }
  return {};
}

}  // namespace troika::sim
