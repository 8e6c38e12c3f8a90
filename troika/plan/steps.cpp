#include "troika/plan/steps.h"

#include <algorithm>

#include "troika/plan/listed_order.h"
#include "troika/plan/step_table.h"

namespace troika::plan {
namespace {

// Groups that are under way together.
int32_t window_of(const RowsBucket& bucket, const StepTable& table) {
  const auto chunks = static_cast<int64_t>(table.chunks());
  if (bucket.in_flight == 0 || bucket.in_flight >= chunks) return table.groups();
  const auto size = static_cast<int64_t>(table.group_size());
  return static_cast<int32_t>((bucket.in_flight + size - 1) / size);
}

std::vector<Step> by_stages(const RowsBucket& bucket, const StepTable& table) {
  StepList list(table);
  const int32_t window = window_of(bucket, table);
  for (int32_t first = 0; first < table.groups(); first += window) {
    const int32_t end = std::min(table.groups(), first + window);
    for (int32_t position = 0; position < table.positions(); ++position) {
      for (int32_t group = first; group < end; ++group) list.add_group(group, position);
    }
  }
  return list.take();
}

// At each tick every group under way does what comes after its last: `add` its n-th of `length`. A
// group starts `lag` ticks after the one before it, and not before the one that it takes the place
// of is done.
template <class Add>
void by_ticks(int32_t groups, int32_t window, int64_t lag, int64_t length, const Add& add) {
  std::vector<int64_t> starts;
  for (int32_t group = 0; group < groups; ++group) {
    int64_t start = group == 0 ? 0 : starts.back() + lag;
    if (group >= window) {
      start = std::max(start, starts[static_cast<size_t>(group - window)] + length);
    }
    starts.push_back(start);
  }
  size_t oldest = 0;
  for (int64_t tick = 0; length > 0 && oldest < starts.size(); ++tick) {
    for (size_t group = oldest; group < starts.size() && starts[group] <= tick; ++group) {
      const int64_t number = tick - starts[group];
      if (number < length) add(static_cast<int32_t>(group), number);
    }
    while (oldest < starts.size() && starts[oldest] + length <= tick + 1) ++oldest;
  }
}

std::vector<Step> by_wavefront(const RowsBucket& bucket, const StepTable& table) {
  StepList list(table);
  by_ticks(table.groups(), window_of(bucket, table), 1, table.positions(),
           [&](int32_t group, int64_t position) {
             list.add_group(group, static_cast<int32_t>(position));
           });
  return list.take();
}

std::vector<Step> by_products(const RowsBucket& bucket, const StepTable& table,
                              std::span<const int32_t> turns) {
  std::vector<std::pair<int32_t, int32_t>> all;  // position and turn
  for (int32_t position = 0; position < table.positions(); ++position) {
    for (int32_t turn = 0; turn < turns[static_cast<size_t>(position)]; ++turn) {
      all.emplace_back(position, turn);
    }
  }
  StepList list(table);
  by_ticks(table.groups(), window_of(bucket, table), bucket.lag, static_cast<int64_t>(all.size()),
           [&](int32_t group, int64_t number) {
             const auto [position, turn] = all[static_cast<size_t>(number)];
             list.add_group(group, position, turn);
           });
  return list.take();
}

}  // namespace

JoinedStages::JoinedStages(const RowsBucket& bucket) {
  for (const Placement& placement : bucket.placements) {
    if (placement.join_chunks < 2) continue;
    group_size_ = placement.join_chunks;
    for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
      stages_.insert({placement.stage, layer});
    }
  }
}

bool JoinedStages::touch(const Placement& placement) const {
  for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
    if (contains(placement.stage, layer)) return true;
  }
  return false;
}

bool JoinedStages::cover(const Placement& placement) const {
  for (int32_t layer = placement.first_layer; layer <= placement.last_layer; ++layer) {
    if (!contains(placement.stage, layer)) return false;
  }
  return true;
}

std::vector<std::span<const graph::OpId>> turns(const graph::Graph& graph,
                                                std::span<const graph::OpId> stage) {
  const auto is_product = [&](size_t i) {
    return graph.op(stage[i]).kind == graph::OpKind::kMatMul;
  };
  std::vector<std::span<const graph::OpId>> turns;
  size_t first = 0;
  for (size_t i = 1; i <= stage.size(); ++i) {
    if (i < stage.size() && is_product(i) == is_product(first)) continue;
    turns.push_back(stage.subspan(first, i - first));
    first = i;
  }
  return turns;
}

std::vector<int32_t> turn_counts(const graph::Graph& graph) {
  std::vector<std::vector<graph::OpId>> stages(static_cast<size_t>(kStages * graph.n_layers));
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const graph::Op& op = graph.ops[id];
    const auto stage = std::find(kLayerStages.begin(), kLayerStages.end(), op.stage);
    if (stage == kLayerStages.end()) continue;
    const auto position = kStages * op.layer + (stage - kLayerStages.begin());
    stages[static_cast<size_t>(position)].push_back(static_cast<graph::OpId>(id));
  }
  std::vector<int32_t> counts;
  for (const auto& stage : stages) {
    counts.push_back(static_cast<int32_t>(turns(graph, stage).size()));
  }
  return counts;
}

std::vector<int64_t> chunk_sizes(const RowsBucket& bucket, int64_t rows) {
  std::vector<int64_t> sizes;
  while (rows > 0) {
    int64_t size = rows;
    if (!bucket.chunks.empty()) {
      size = std::min(size, bucket.chunks[std::min(sizes.size(), bucket.chunks.size() - 1)]);
    }
    sizes.push_back(size);
    rows -= size;
  }
  return sizes;
}

int32_t chunk_count(const RowsBucket& bucket, int64_t rows) {
  if (bucket.chunks.empty()) return 1;
  int32_t count = 0;
  for (const int64_t size : bucket.chunks) {
    if (rows <= 0) return count;
    rows -= size;
    ++count;
  }
  const int64_t last = bucket.chunks.back();
  return count + (rows <= 0 ? 0 : static_cast<int32_t>((rows + last - 1) / last));
}

Result<std::vector<Step>> order_steps(const Plan& plan, const RowsBucket& bucket, int32_t n_layers,
                                      int32_t n_chunks, const std::vector<bool>& apart,
                                      std::span<const int32_t> turns) {
  const StepTable table(bucket, n_layers, n_chunks, apart);
  if (!bucket.order.empty()) return order_by_list(plan, bucket, table);
  if (bucket.order_rule == OrderRule::kProducts) return by_products(bucket, table, turns);
  return bucket.order_rule == OrderRule::kWavefront ? by_wavefront(bucket, table)
                                                    : by_stages(bucket, table);
}

}  // namespace troika::plan
