#include <algorithm>
#include <map>

#include "troika/plan/lower.h"
#include "troika/plan/task_order.h"

namespace troika::plan {
namespace {

using graph::TensorId;

constexpr int64_t kSlotAlignment = 64;  // a cache line, and the widest vector

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A tensor with memory of its own, and the tasks that touch it or a window of it.
struct Life {
  TensorId tensor = -1;
  int64_t bytes = 0;
  std::vector<int32_t> writers;
  std::vector<int32_t> tasks;  // writers too
  bool to_the_end = false;     // read after the pass

  int32_t first() const { return tasks.front(); }
};

// Tasks of a device, and which of them is the first that is still to come.
struct Queue {
  std::vector<int32_t> tasks;
  size_t at = 0;
};

// Fewer tensors than these are not worth looking through for some that are done with.
constexpr size_t kMany = 64;

void add_once(std::vector<int32_t>& tasks, int32_t task) {
  if (tasks.empty() || tasks.back() != task) tasks.push_back(task);
}

// Places one tensor after another in the order in which they are first written.
class Placer {
 public:
  Placer(const CutGraph& cut, std::span<const Task> tasks, int64_t logit_rows)
      : cut_(cut), tasks_(tasks), logit_rows_(logit_rows), order_(device_count()) {}

  MemoryPlan run() {
    MemoryPlan plan;
    plan.slots.resize(cut_.graph.tensors.size());
    find_lives(plan);
    replay();
    std::vector<const Life*> waiting;
    for (const Life& life : lives_) {
      if (!life.tasks.empty()) waiting.push_back(&life);
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Life* a, const Life* b) { return a->first() < b->first(); });
    for (const Life* life : waiting) place(*life, plan);
    for (size_t i = 0; i < plan.slots.size(); ++i) set_window(static_cast<TensorId>(i), plan);
    return plan;
  }

 private:
  size_t device_count() const {
    int32_t most = 0;
    for (const Task& task : tasks_) most = std::max(most, task.device);
    return static_cast<size_t>(most) + 1;
  }

  int64_t rows_of(TensorId id) const {
    const auto index = static_cast<size_t>(id);
    if (cut_.graph.tensor(id).rows == graph::RowCount::kLogits) return logit_rows_;
    return cut_.blocks[static_cast<size_t>(cut_.tensor_blocks[index])].padded;
  }

  void find_lives(MemoryPlan& plan) {
    lives_.resize(cut_.graph.tensors.size());
    for (size_t i = 0; i < lives_.size(); ++i) {
      const graph::Tensor& tensor = cut_.graph.tensors[i];
      const int64_t stride =
          round_up(tensor.width * graph::dtype_bytes(tensor.type), kSlotAlignment);
      plan.slots[i].row_stride = stride;
      const auto id = static_cast<TensorId>(i);
      lives_[i].tensor = id;
      if (tensor.window_of < 0 && tensor.width > 0) lives_[i].bytes = rows_of(id) * stride;
    }
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const auto number = static_cast<int32_t>(t);
      for (const graph::OpId id : tasks_[t].program.ops) {
        const graph::Op& op = cut_.graph.op(id);
        for (const TensorId input : op.inputs) add_once(life_of(input).tasks, number);
        add_once(life_of(op.output).tasks, number);
        add_once(life_of(op.output).writers, number);
      }
    }
    life_of(cut_.graph.logits).to_the_end = true;
  }

  Life& life_of(TensorId id) { return lives_[static_cast<size_t>(cut_.graph.memory_of(id))]; }

  void replay() {
    next_.resize(device_count());
    for (const Task& task : tasks_) {
      const int32_t number = order_.add(task.device);
      next_[static_cast<size_t>(task.device)].tasks.push_back(number);
      for (const int32_t other : task.waits) order_.wait(number, other);
    }
  }

  // True if the old tensor is done with before anybody writes the new one.
  bool may_follow(const Life& old, const Life& next) const {
    if (old.to_the_end) return false;
    return std::all_of(old.tasks.begin(), old.tasks.end(), [&](int32_t task) {
      return std::all_of(next.writers.begin(), next.writers.end(),
                         [&](int32_t writer) { return order_.before(task, writer); });
    });
  }

  // Lets `next_` begin at `task`; called with ascending numbers, so that all calls together are
  // quick.
  void go_on_to(int32_t task) {
    for (Queue& queue : next_) {
      while (queue.at < queue.tasks.size() && queue.tasks[queue.at] < task) ++queue.at;
    }
  }

  // What no later task can meet any more need not be looked at again: all that it did is before
  // everything that is still to come.
  void forget_what_is_done() {
    std::erase_if(alive_, [&](const auto& entry) {
      const Life& life = *entry.second;
      if (life.to_the_end) return false;
      return std::all_of(life.tasks.begin(), life.tasks.end(), [&](int32_t done) {
        return std::all_of(next_.begin(), next_.end(), [&](const Queue& queue) {
          return queue.at == queue.tasks.size() || order_.before(done, queue.tasks[queue.at]);
        });
      });
    });
    many_ = std::max(kMany, 2 * alive_.size());
  }

  void place(const Life& life, MemoryPlan& plan) {
    if (life.bytes == 0) return;
    if (alive_.size() > many_) {
      go_on_to(life.first());
      forget_what_is_done();
    }
    // First gap that is large enough between those that it must not touch.
    int64_t offset = 0;
    for (const auto& [begin, other] : alive_) {
      if (may_follow(*other, life)) continue;
      if (offset + life.bytes <= begin) break;
      offset = std::max(offset, begin + other->bytes);
    }
    plan.slots[static_cast<size_t>(life.tensor)].offset = offset;
    alive_.emplace(offset, &life);
    plan.bytes = std::max(plan.bytes, offset + life.bytes);
  }

  void set_window(TensorId id, MemoryPlan& plan) const {
    const graph::Tensor& tensor = cut_.graph.tensor(id);
    if (tensor.window_of < 0) return;
    Slot slot = plan.slots[static_cast<size_t>(tensor.window_of)];
    slot.offset += tensor.window_begin * graph::dtype_bytes(tensor.type) +
                   cut_.row_in_memory(id) * slot.row_stride;
    plan.slots[static_cast<size_t>(id)] = slot;
  }

  const CutGraph& cut_;
  std::span<const Task> tasks_;
  int64_t logit_rows_;
  TaskOrder order_;
  std::vector<Life> lives_;
  std::multimap<int64_t, const Life*> alive_;  // by offset
  size_t many_ = kMany;                        // of them: time to forget some
  std::vector<Queue> next_;                    // by device
};

}  // namespace

MemoryPlan plan_memory(const CutGraph& cut, std::span<const Task> tasks, int64_t logit_rows) {
  return Placer(cut, tasks, logit_rows).run();
}

}  // namespace troika::plan
