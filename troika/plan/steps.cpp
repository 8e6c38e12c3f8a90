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

// At each tick every group under way does the step after its last one. A group starts one tick
// after the one before it, and not before the one that it takes the place of is done.
std::vector<Step> by_wavefront(const RowsBucket& bucket, const StepTable& table) {
  StepList list(table);
  const int32_t window = window_of(bucket, table);
  std::vector<int64_t> starts;
  for (int32_t group = 0; group < table.groups(); ++group) {
    int64_t start = group == 0 ? 0 : starts.back() + 1;
    if (group >= window) {
      start = std::max(start, starts[static_cast<size_t>(group - window)] + table.positions());
    }
    starts.push_back(start);
  }
  const auto groups = static_cast<size_t>(table.groups());
  size_t oldest = 0;
  for (int64_t tick = 0; oldest < groups; ++tick) {
    for (size_t group = oldest; group < groups && starts[group] <= tick; ++group) {
      const int64_t position = tick - starts[group];
      if (position >= table.positions()) continue;
      list.add_group(static_cast<int32_t>(group), static_cast<int32_t>(position));
    }
    while (oldest < groups && starts[oldest] + table.positions() <= tick + 1) ++oldest;
  }
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
                                      int32_t n_chunks, const std::vector<bool>& apart) {
  const StepTable table(bucket, n_layers, n_chunks, apart);
  if (!bucket.order.empty()) return order_by_list(plan, bucket, table);
  return bucket.order_rule == OrderRule::kWavefront ? by_wavefront(bucket, table)
                                                    : by_stages(bucket, table);
}

}  // namespace troika::plan
