#include <algorithm>
#include <map>

#include "troika/plan/lower.h"

namespace troika::plan {
namespace {

constexpr int64_t kSlotAlignment = 64;  // a cache line, and the widest vector

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// When a tensor is written first and read last, as numbers of operators.
struct Lifetime {
  graph::TensorId tensor = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
};

std::vector<Lifetime> lifetimes(const graph::Graph& graph, int64_t max_rows,
                                int64_t max_logit_rows) {
  std::vector<Lifetime> all(graph.tensors.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const graph::Tensor& tensor = graph.tensors[i];
    const int64_t rows = tensor.rows == graph::RowCount::kTokens ? max_rows : max_logit_rows;
    const int64_t stride = round_up(tensor.width * graph::dtype_bytes(tensor.type), kSlotAlignment);
    all[i] = {static_cast<graph::TensorId>(i), tensor.producer, tensor.producer, rows * stride};
  }
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    for (const graph::TensorId input : graph.ops[op].inputs) {
      Lifetime& life = all[static_cast<size_t>(input)];
      life.last = std::max(life.last, static_cast<int64_t>(op));
    }
  }
  all[static_cast<size_t>(graph.logits)].last = static_cast<int64_t>(graph.ops.size());
  // Operators of one stage may run side by side or fused: what a stage reads and writes lives until
  // its end, what it writes from its beginning.
  for (Lifetime& life : all) {
    const auto same_place = [&](int64_t a, int64_t b) {
      const graph::Op& first = graph.ops[static_cast<size_t>(a)];
      const graph::Op& second = graph.ops[static_cast<size_t>(b)];
      return first.stage == second.stage && first.layer == second.layer;
    };
    while (life.first > 0 && same_place(life.first - 1, life.first)) --life.first;
    const auto end = static_cast<int64_t>(graph.ops.size());
    while (life.last + 1 < end && same_place(life.last, life.last + 1)) ++life.last;
  }
  return all;
}

}  // namespace

MemoryPlan plan_memory(const graph::Graph& graph, int64_t max_rows, int64_t max_logit_rows) {
  std::vector<Lifetime> pending = lifetimes(graph, max_rows, max_logit_rows);
  std::stable_sort(pending.begin(), pending.end(),
                   [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; });
  MemoryPlan plan;
  plan.slots.resize(graph.tensors.size());
  std::map<int64_t, Lifetime> placed;  // by offset: tensors that are alive now
  for (const Lifetime& life : pending) {
    const graph::Tensor& tensor = graph.tensor(life.tensor);
    Slot& slot = plan.slots[static_cast<size_t>(life.tensor)];
    slot.row_stride = round_up(tensor.width * graph::dtype_bytes(tensor.type), kSlotAlignment);
    if (life.bytes == 0) continue;
    std::erase_if(placed, [&](const auto& entry) { return entry.second.last < life.first; });
    // First gap that is large enough.
    int64_t offset = 0;
    for (const auto& [begin, other] : placed) {
      if (offset + life.bytes <= begin) break;
      offset = std::max(offset, begin + other.bytes);
    }
    slot.offset = offset;
    placed.emplace(offset, life);
    plan.bytes = std::max(plan.bytes, offset + life.bytes);
  }
  return plan;
}

}  // namespace troika::plan
