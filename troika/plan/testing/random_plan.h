// Random plans for tests: any mix of devices, cuts, shares, chunks and orders that check() accepts.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "troika/plan/plan.h"
#include "troika/plan/steps.h"

namespace troika::plan::testing {

// A value in [0, n); the same on every platform for the same generator, unlike a distribution.
inline int64_t below(std::mt19937& random, int64_t n) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
}

inline std::vector<Part> random_parts(const std::vector<std::string>& devices, size_t count,
                                      std::mt19937& random) {
  std::vector<std::string> names = devices;
  for (size_t i = names.size(); i > 1; --i) {
    std::swap(names[i - 1], names[static_cast<size_t>(below(random, static_cast<int64_t>(i)))]);
  }
  std::vector<Part> parts;
  for (size_t i = 0; i < std::min(count, names.size()); ++i) {
    parts.push_back(
        {names[i], 0.05 + static_cast<double>(below(random, 100)) / 100, random() % 2 == 0});
  }
  return parts;
}

inline void random_cut(Placement& placement, const std::vector<std::string>& devices,
                       std::mt19937& random) {
  using graph::Stage;
  std::vector<Cut> cuts = {Cut::kNone, Cut::kWeightCentric, Cut::kActivationCentric, Cut::kHybrid,
                           Cut::kK,    Cut::kPaired};
  if (placement.stage == Stage::kInput) cuts = {Cut::kNone, Cut::kActivationCentric};
  if (placement.stage == Stage::kAttention) std::erase(cuts, Cut::kK);
  if (placement.stage == Stage::kHead) std::erase(cuts, Cut::kActivationCentric);
  placement.cut = cuts[static_cast<size_t>(below(random, static_cast<int64_t>(cuts.size())))];
  const int64_t most = placement.cut == Cut::kNone ? 1 : static_cast<int64_t>(devices.size());
  placement.parts = random_parts(devices, static_cast<size_t>(1 + below(random, most)), random);
  if (random() % 16 == 0) placement.delay_us = static_cast<double>(below(random, 200));
}

// Some stages' chunks are computed by one task.
inline void random_joins(RowsBucket& bucket, std::mt19937& random) {
  if (bucket.chunks.empty() || random() % 2 == 0) return;
  const auto count = static_cast<int32_t>(2 + below(random, 2));
  for (Placement& placement : bucket.placements) {
    if (placement.stage == graph::Stage::kHead || !placement.op.empty()) continue;
    if (random() % 2 == 0) placement.join_chunks = count;
  }
  const JoinedStages joined(bucket);
  for (Placement& placement : bucket.placements) {
    if (joined.touch(placement)) placement.chunk = -1;
  }
}

// A list that can be kept: again and again some chunk, or some that join, goes on by one stage.
inline void random_list(RowsBucket& bucket, int64_t n_layers, std::mt19937& random) {
  const JoinedStages joined(bucket);
  const int32_t chunks = chunk_count(bucket, bucket.max_rows);
  const int32_t size = joined.group_size();
  constexpr graph::Stage kStages[] = {graph::Stage::kG1, graph::Stage::kAttention,
                                      graph::Stage::kG2};
  std::vector<int32_t> done(static_cast<size_t>(chunks), 0);  // stages, by chunk
  const auto last = static_cast<int32_t>(3 * n_layers);
  for (auto left = static_cast<int64_t>(chunks) * last; left > 0;) {
    const auto chunk = static_cast<int32_t>(below(random, chunks));
    const int32_t position = done[static_cast<size_t>(chunk)];
    if (position == last) continue;
    const graph::Stage stage = kStages[position % 3];
    const bool joins = joined.contains(stage, position / 3);
    const int32_t first = joins ? chunk / size * size : chunk;
    const int32_t end = joins ? std::min(chunks, first + size) : chunk + 1;
    bool ready = true;
    for (int32_t c = 0; c < end; ++c) {
      const int32_t its = done[static_cast<size_t>(c)];
      if (c >= first) ready = ready && its == position;
      if (c < first && stage == graph::Stage::kAttention) ready = ready && its >= position;
    }
    if (!ready) continue;
    for (int32_t c = first; c < end; ++c) ++done[static_cast<size_t>(c)];
    left -= end - first;
    const int32_t layer = position / 3;
    bucket.order.push_back({stage, layer, layer, first, end - 1});
  }
}

// One bucket, for passes of up to `max_rows` rows.
inline Plan random_plan(const graph::Graph& graph, const std::vector<std::string>& devices,
                        int64_t max_rows, std::mt19937& random) {
  using graph::Stage;
  Plan plan = single_device_plan(graph, devices.front(), max_rows, "f32");
  plan.devices = devices;
  plan.reason = "random";
  RowsBucket& bucket = plan.buckets.front();
  if (random() % 2 == 0) {
    const int64_t count = 1 + below(random, 4);
    for (int64_t i = 0; i < count; ++i) bucket.chunks.push_back(1 + below(random, max_rows));
    // The last one repeats: not too small.
    bucket.chunks.back() = std::max(bucket.chunks.back(), (max_rows + 7) / 8);
    bucket.in_flight = below(random, 4);
  }
  bucket.placements.clear();
  const auto last = static_cast<int32_t>(graph.n_layers - 1);
  const auto place = [&](Stage stage, int32_t first_layer, int32_t last_layer) {
    Placement placement;
    placement.stage = stage;
    placement.first_layer = first_layer;
    placement.last_layer = last_layer;
    random_cut(placement, devices, random);
    bucket.placements.push_back(std::move(placement));
  };
  place(Stage::kInput, -1, -1);
  place(Stage::kHead, -1, -1);
  for (const Stage stage : {Stage::kG1, Stage::kAttention, Stage::kG2}) {
    // One placement for all layers, or another one from some layer on.
    const auto border = static_cast<int32_t>(below(random, graph.n_layers));
    place(stage, 0, border);
    if (border < last) place(stage, border + 1, last);
  }
  const char* const products[] = {"q", "k", "v", "o", "gate", "up", "down"};
  for (size_t i = 0; i < std::size(products); ++i) {
    if (random() % 4 != 0) continue;
    place(i < 3 ? Stage::kG1 : Stage::kG2, 0, last);
    bucket.placements.back().op = products[i];
    if (random() % 2 == 0) bucket.placements.back().chunk = 1;
  }
  random_joins(bucket, random);
  const auto rule = random() % 4;
  if (rule == 0) bucket.order_rule = OrderRule::kWavefront;
  if (rule == 1) {
    bucket.order_rule = OrderRule::kProducts;
    bucket.lag = static_cast<int32_t>(below(random, 12));
  }
  if (!bucket.chunks.empty() && random() % 2 == 0) {
    bucket.lag = 0;
    random_list(bucket, graph.n_layers, random);
  }
  return plan;
}

}  // namespace troika::plan::testing
