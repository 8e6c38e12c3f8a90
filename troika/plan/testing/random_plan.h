// Random plans for tests: any mix of devices, cuts, shares, chunks and orders that check() accepts.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "troika/plan/plan.h"

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
  return plan;
}

}  // namespace troika::plan::testing
