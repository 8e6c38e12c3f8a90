#include "troika/plan/writers.h"

#include <algorithm>

namespace troika::plan {
namespace {

using graph::OpKind;
using graph::TensorId;

bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

// By operator: whether another device reads what it writes.
std::vector<bool> find_crossing(const CutGraph& cut) {
  std::vector<bool> crosses(cut.graph.ops.size(), false);
  Writers writers(cut);
  for (size_t i = 0; i < cut.graph.ops.size(); ++i) {
    const graph::Op& op = cut.graph.ops[i];
    for (const int32_t other : writers.before(op)) {
      const auto writer = static_cast<size_t>(other);
      if (cut.assignments[writer].device != cut.assignments[i].device) crosses[writer] = true;
    }
    writers.record(op, static_cast<int32_t>(i));
  }
  return crosses;
}

}  // namespace

Writers::Writers(const CutGraph& cut)
    : cut_(cut), tensors_(cut.graph.tensors.size()), kv_(static_cast<size_t>(cut.graph.n_layers)) {}

Range Writers::columns_of(TensorId id) const {
  const graph::Tensor& tensor = cut_.graph.tensor(id);
  // A tensor that only orders has one place.
  return {tensor.window_begin, tensor.window_begin + std::max<int64_t>(tensor.width, 1)};
}

void Writers::record(const graph::Op& op, int32_t writer) {
  const Range rows = cut_.rows_of(op.output);
  tensors_[static_cast<size_t>(cut_.graph.memory_of(op.output))].push_back(
      {columns_of(op.output), rows, writer});
  if (op.kind == OpKind::kKvWrite) {
    kv_[static_cast<size_t>(op.layer)].push_back(
        {{op.heads.first_head, op.heads.first_head + op.heads.n_heads}, rows, writer});
  }
}

void Writers::collect(const std::vector<Write>& writes, Range columns, Range rows,
                      std::vector<int32_t>& writers) {
  for (const Write& write : writes) {
    if (overlap(write.columns, columns) && overlap(write.rows, rows)) {
      writers.push_back(write.writer);
    }
  }
}

std::vector<int32_t> Writers::before(const graph::Op& op) const {
  std::vector<int32_t> writers;
  for (const TensorId input : op.inputs) {
    collect(tensors_[static_cast<size_t>(cut_.graph.memory_of(input))], columns_of(input),
            cut_.rows_of(input), writers);
  }
  if (op.kind == OpKind::kAttention) {
    // The keys of all rows before, and its own: whose they are is known only when the pass runs.
    const int64_t first = op.heads.first_head / op.heads.group;
    const int64_t last = (op.heads.first_head + op.heads.n_heads - 1) / op.heads.group;
    collect(kv_[static_cast<size_t>(op.layer)], {first, last + 1}, {0, cut_.rows_of(op.output).end},
            writers);
  }
  std::sort(writers.begin(), writers.end());
  writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
  return writers;
}

std::vector<bool> find_ends(const CutGraph& cut, size_t n_devices) {
  enum class Next { kNothing, kOwnWork, kForOthers };
  struct Place {
    int32_t step = -1;
    int32_t block = -1;
    bool operator==(const Place&) const = default;
  };
  const std::vector<bool> crosses = find_crossing(cut);
  std::vector<Place> places(n_devices);
  std::vector<Next> next(n_devices, Next::kNothing);
  std::vector<bool> ends(crosses.size(), false);
  for (size_t i = crosses.size(); i-- > 0;) {
    const graph::Op& op = cut.graph.ops[i];
    const auto device = static_cast<size_t>(cut.assignments[i].device);
    const Place place = {cut.assignments[i].step, cut.assignments[i].block};
    if (places[device] != place) next[device] = Next::kNothing;
    places[device] = place;
    ends[i] = crosses[i] && next[device] == Next::kOwnWork;
    if (crosses[i]) {
      next[device] = Next::kForOthers;
    } else if (op.kind == OpKind::kMatMul || op.kind == OpKind::kAttention) {
      next[device] = Next::kOwnWork;
    }
  }
  return ends;
}

}  // namespace troika::plan
