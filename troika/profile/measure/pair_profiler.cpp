#include "troika/profile/measure/pair_profiler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace troika::profile {
namespace {

constexpr double kTogetherUs = 40'000;  // for which both are kept busy
constexpr double kMostTasks = 2000;
// In a row, so that the caller's notice of the last one's end counts little.
constexpr int kJoins = 60;

const ProductShape& largest_of(const ModelWork& work) {
  return *std::max_element(work.products.begin(), work.products.end(),
                           [](const auto& a, const auto& b) { return a.n * a.k < b.n * b.k; });
}

// One row of a product: reads stored weights.
Result<std::shared_ptr<Prepared>> reader(const ProductShape& shape, const Stopwatch& stopwatch) {
  const auto& standard = stopwatch.device().info().standard_rows;
  const graph::WeightSlice slice{shape.weights[0], 0, shape.n, 0, shape.k};
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

// Of tasks that the devices ran in rounds, what one of them takes.
double usual_us(const Side& side, std::span<const device::Fence> fences) {
  std::vector<double> values;
  for (const device::Fence& fence : fences) {
    const device::TaskTimes times = side.times(fence);
    values.push_back(to_us(times.end - times.start));
  }
  return summarize(std::move(values)).median_us;
}

// Rounds of a task of each, which wait for both of the round before, as devices do that share a
// layer. A round takes longer than the longer of the two tasks: who waits wakes up late, and of two
// times that vary the longer one counts. That is what a join takes.
Result<double> join_us(const Side& a, const Side& b) {
  const Clock& host = a.stopwatch->host();
  std::vector<device::Fence> first, second;
  const TimePoint begin = host.now();
  for (int i = 0; i < kJoins; ++i) {
    const size_t waits = i > 0 ? 1 : 0;
    ASSIGN_OR_RETURN(const device::Fence one,
                     a.submit({second.data() + second.size() - waits, waits}));
    ASSIGN_OR_RETURN(const device::Fence other,
                     b.submit({first.data() + first.size() - waits, waits}));
    first.push_back(one);
    second.push_back(other);
  }
  RETURN_IF_ERROR(a.stopwatch->wait(first.back(), a.prepared));
  RETURN_IF_ERROR(b.stopwatch->wait(second.back(), b.prepared));
  const double round_us = to_us(host.now() - begin) / kJoins;
  return std::max(0.0, round_us - std::max(usual_us(a, first), usual_us(b, second)));
}

// Tasks of both in turn by a caller that waits for each; what is left of the time after the tasks
// themselves is what its joins take.
Result<double> blocking_join_us(const Side& a, const Side& b) {
  const Clock& host = a.stopwatch->host();
  const TimePoint begin = host.now();
  double busy = 0;
  for (int i = 0; i < kJoins; ++i) {
    const Side& side = i % 2 == 0 ? a : b;
    ASSIGN_OR_RETURN(const device::Fence fence, side.submit());
    RETURN_IF_ERROR(side.stopwatch->wait(fence, side.prepared));
    const device::TaskTimes times = side.times(fence);
    busy += to_us(times.end - times.start);
  }
  return std::max(0.0, (to_us(host.now() - begin) - busy) / kJoins);
}

// Of several; now and then a core is taken away for a millisecond.
Result<double> median_of(const std::function<Result<double>()>& measure) {
  std::vector<double> values;
  for (int i = 0; i < 7; ++i) {
    ASSIGN_OR_RETURN(const double us, measure());
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
    ASSIGN_OR_RETURN(side->prepared, reader(largest_of(work), *side->stopwatch));
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
  // As long as what lies between two joins of a layer: how a device waits follows from how long it
  // usually waits.
  for (Side* side : {&a, &b}) {
    ASSIGN_OR_RETURN(side->prepared, reader(work.main(), *side->stopwatch));
  }
  ASSIGN_OR_RETURN(pair.join_us, median_of([&] { return join_us(a, b); }));
  ASSIGN_OR_RETURN(pair.blocking_join_us, median_of([&] { return blocking_join_us(a, b); }));
  return pair;
}

}  // namespace troika::profile
