#include "troika/profile/measure/pair_profiler.h"

#include <algorithm>
#include <cmath>

namespace troika::profile {
namespace {

constexpr double kTogetherUs = 40'000;  // for which both are kept busy
constexpr double kMostTasks = 2000;
constexpr int kJoins = 20;

// One row of the largest product: reads stored weights.
Result<std::shared_ptr<Prepared>> reader(const ModelWork& work, const Stopwatch& stopwatch) {
  const ProductShape& largest =
      *std::max_element(work.products.begin(), work.products.end(),
                        [](const auto& a, const auto& b) { return a.n * a.k < b.n * b.k; });
  const auto& standard = stopwatch.device().info().standard_rows;
  const graph::WeightSlice slice{largest.weights[0], 0, largest.n, 0, largest.k};
  ASSIGN_OR_RETURN(auto workload,
                   Workload::products({&slice, 1}, {1, 0, standard.empty() ? 1 : standard.front()},
                                      Order::kWeightInPlace));
  return stopwatch.prepare(std::move(workload));
}

double largest_bytes(const ModelWork& work) {
  double bytes = 0;
  for (const ProductShape& shape : work.products) bytes = std::max(bytes, shape.weight_bytes());
  return bytes;
}

// Half of a pair while it is kept busy.
struct Side {
  const Stopwatch* stopwatch = nullptr;
  std::shared_ptr<Prepared> prepared;
  double alone_us = 0;
  double together_us = 0;
  std::vector<device::Fence> fences;

  Result<device::Fence> submit(std::span<const device::Fence> waits = {}) const {
    return stopwatch->device().submit(*prepared->kernel, prepared->workload->bindings(), waits);
  }
  device::TaskTimes times(const device::Fence& fence) const {
    return stopwatch->device().times(fence);
  }
};

Status run_together(Side& a, Side& b) {
  for (Side* side : {&a, &b}) {
    const double count = std::clamp(kTogetherUs / std::max(side->alone_us, 1e-3), 4.0, kMostTasks);
    for (int i = 0; i < static_cast<int>(count); ++i) {
      ASSIGN_OR_RETURN(const device::Fence fence, side->submit());
      side->fences.push_back(fence);
    }
  }
  for (Side* side : {&a, &b}) {
    RETURN_IF_ERROR(side->stopwatch->wait(side->fences.back(), side->prepared));
    // At the beginning and the end one of them may be alone.
    std::vector<double> values;
    const size_t count = side->fences.size();
    for (size_t i = count / 4; i < count - count / 4; ++i) {
      const device::TaskTimes times = side->times(side->fences[i]);
      values.push_back(to_us(times.end - times.start));
    }
    side->together_us = summarize(std::move(values)).median_us;
  }
  return {};
}

// Tasks of both in turn, each waiting for the one before; what is left of the time after the tasks
// themselves is what joins take.
Result<double> join_us(const Side& a, const Side& b, bool blocking) {
  const Clock& host = a.stopwatch->host();
  std::vector<std::pair<const Side*, device::Fence>> tasks;
  const TimePoint begin = host.now();
  device::Fence before;
  for (int i = 0; i < kJoins; ++i) {
    const Side& side = i % 2 == 0 ? a : b;
    const bool waits = i > 0 && !blocking;
    ASSIGN_OR_RETURN(const device::Fence fence,
                     side.submit({&before, waits ? size_t{1} : size_t{0}}));
    if (blocking) RETURN_IF_ERROR(side.stopwatch->wait(fence, side.prepared));
    tasks.emplace_back(&side, fence);
    before = fence;
  }
  RETURN_IF_ERROR(tasks.back().first->stopwatch->wait(before, tasks.back().first->prepared));
  const double whole = to_us(host.now() - begin);
  double busy = 0;
  for (const auto& [side, fence] : tasks) {
    const device::TaskTimes times = side->times(fence);
    busy += to_us(times.end - times.start);
  }
  return std::max(0.0, (whole - busy) / (kJoins - 1));
}

Result<double> median_join(const Side& a, const Side& b, bool blocking) {
  std::vector<double> values;
  for (int i = 0; i < 7; ++i) {
    ASSIGN_OR_RETURN(const double us, join_us(a, b, blocking));
    values.push_back(us);
  }
  return summarize(std::move(values)).median_us;
}

}  // namespace

Result<PairProfile> measure_pair(const ModelWork& work, const Stopwatch& first,
                                 const Stopwatch& second) {
  Side a{&first, nullptr, 0, 0, {}};
  Side b{&second, nullptr, 0, 0, {}};
  for (Side* side : {&a, &b}) {
    ASSIGN_OR_RETURN(side->prepared, reader(work, *side->stopwatch));
    ASSIGN_OR_RETURN(const Sample alone, side->stopwatch->time({&side->prepared, 1}));
    side->alone_us = alone.median_us;
  }
  RETURN_IF_ERROR(run_together(a, b));
  PairProfile pair;
  pair.first = first.device().info().name;
  pair.second = second.device().info().name;
  const auto keeps = [](const Side& side) {
    return side.together_us > 0 ? std::min(1.0, side.alone_us / side.together_us) : 1.0;
  };
  pair.first_keeps = keeps(a);
  pair.second_keeps = keeps(b);
  const double bytes = largest_bytes(work);
  if (a.together_us > 0 && b.together_us > 0) {
    pair.together_gbps = (bytes / a.together_us + bytes / b.together_us) * 1e-3;
  }
  ASSIGN_OR_RETURN(pair.join_us, median_join(a, b, false));
  ASSIGN_OR_RETURN(pair.blocking_join_us, median_join(a, b, true));
  return pair;
}

}  // namespace troika::profile
