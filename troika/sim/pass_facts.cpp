// What can be asked of the pass that was built last.
#include <algorithm>

#include "troika/sim/pass_state.h"

namespace troika::sim {

using graph::OpId;
using graph::OpKind;

TaskPlace PassScheduler::State::place_of(const TaskGroup& task) const {
  TaskPlace place =
      layout->place_at[static_cast<size_t>(instances[static_cast<size_t>(task.instance)].position)];
  if (task.block >= 0) place.chunk = blocks[static_cast<size_t>(task.block)].chunk;
  return place;
}

void PassScheduler::add_places(PassSchedule& out) const {
  if (state_->lowered || !out.places.empty()) return;
  for (const TaskGroup& task : state_->layout->grouper->tasks()) {
    out.places.push_back(state_->place_of(task));
  }
}

std::vector<double> PassScheduler::weight_bytes() const {
  const State& state = *state_;
  if (state.lowered) return {};
  struct Slice {
    int32_t device = 0;
    int64_t number = 0;  // of the product in its stage
    int64_t n_begin = 0;
    int64_t n = 0;
    int64_t k_begin = 0;
    int64_t k = 0;
    auto operator<=>(const Slice&) const = default;
  };
  std::vector<double> bytes(state.infos.size(), 0);
  std::vector<std::vector<const CutStage*>> stages(static_cast<size_t>(state.layout->positions));
  std::vector<std::vector<Slice>> seen(stages.size());
  for (const CutInstance& instance : state.instances) {
    const auto position = static_cast<size_t>(instance.position);
    auto& known = stages[position];
    if (std::find(known.begin(), known.end(), instance.stage) != known.end()) continue;
    known.push_back(instance.stage);
    const OpId first = state.layout->ops[position - static_cast<size_t>(instance.shift)].front();
    for (const CutOp& op : instance.stage->ops) {
      if (op.kind != OpKind::kMatMul) continue;
      const Slice slice{op.device, op.product - first, op.n_begin, op.n, op.k_begin, op.k};
      auto& slices = seen[position];
      if (std::find(slices.begin(), slices.end(), slice) != slices.end()) continue;
      slices.push_back(slice);
      bytes[static_cast<size_t>(op.device)] +=
          op.weight_bits / 8 * static_cast<double>(op.n) * static_cast<double>(op.k);
    }
  }
  return bytes;
}

std::vector<TaskFacts> PassScheduler::task_facts(int64_t rows) const {
  const State& state = *state_;
  if (state.lowered) return {};
  const auto& tasks = state.layout->grouper->tasks();
  std::vector<TaskFacts> facts(tasks.size());
  for (size_t t = 0; t < tasks.size(); ++t) {
    const bool whole = tasks[t].block < 0;
    const plan::Block* const block =
        whole ? nullptr : &state.blocks[static_cast<size_t>(tasks[t].block)];
    facts[t].row_begin = whole ? 0 : block->begin;
    facts[t].rows = whole ? rows : block->rows;
  }
  for (const CutInstance& instance : state.instances) {
    for (size_t i = 0; i < instance.stage->ops.size(); ++i) {
      const CutOp& op = instance.stage->ops[i];
      const int32_t number = instance.first_op + static_cast<int32_t>(i);
      TaskFacts& task = facts[static_cast<size_t>(state.layout->grouper->task_of(number))];
      if (instance.block == kHeadBlock) task.rows = std::min(state.options.logit_rows, rows);
      const auto count = static_cast<double>(task.rows);
      task.bytes += op.width_bytes * count;
      if (op.kind == OpKind::kConcat) task.copy_bytes += op.width_bytes * count;
      if (op.kind == OpKind::kMatMul) {
        const double weights = static_cast<double>(op.n) * static_cast<double>(op.k);
        task.bytes += op.weight_bits / 8 * weights;
        task.macs += weights * count;
      } else if (op.kind == OpKind::kAttention) {
        const double keys =
            static_cast<double>(state.options.depth + task.row_begin) + (count + 1) / 2;
        task.macs += 2 * static_cast<double>(op.head_width) * keys * count;
      }
    }
  }
  return facts;
}

}  // namespace troika::sim
