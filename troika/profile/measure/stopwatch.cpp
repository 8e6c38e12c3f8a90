#include "troika/profile/measure/stopwatch.h"

#include <algorithm>
#include <cmath>

#include "troika/device/quarantine.h"

namespace troika::profile {
namespace {

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The standard error of a median of values that are spread like a normal distribution.
double noise_of(const Sample& sample) {
  constexpr double kDeviations = 1.4826 * 1.2533;
  return sample.median_us <= 0 ? 0
                               : kDeviations * sample.deviation_us / sample.median_us /
                                     std::sqrt(static_cast<double>(sample.repeats));
}

}  // namespace

Sample summarize(std::vector<double> values) {
  Sample sample;
  sample.repeats = static_cast<int64_t>(values.size());
  sample.median_us = median(values);
  for (double& value : values) value = std::abs(value - sample.median_us);
  sample.deviation_us = median(values);
  return sample;
}

Status Stopwatch::check_cancelled() const {
  if (cancelled_ && cancelled_()) {
    return make_error(ErrorCode::kCancelled, "interrupted while device {} was measured",
                      device_.info().name);
  }
  return {};
}

Result<std::shared_ptr<Prepared>> Stopwatch::prepare(std::shared_ptr<Workload> workload) const {
  RETURN_IF_ERROR(check_cancelled());
  auto prepared = std::make_shared<Prepared>();
  prepared->workload = std::move(workload);
  const int64_t before = device_.stats().own_bytes;
  const TimePoint begin = host_.now();
  auto kernel = device_.compile(prepared->workload->program());
  if (!kernel && device_.stuck()) device::quarantine(prepared);
  if (!kernel) return tl::unexpected<Error>(std::move(kernel.error()));
  prepared->kernel = std::move(*kernel);
  prepared->compile_time = host_.now() - begin;
  prepared->kept_bytes = std::max<int64_t>(0, device_.stats().own_bytes - before);
  return prepared;
}

Status Stopwatch::wait(const device::Fence& fence, const std::shared_ptr<void>& kept) const {
  device::WaitPolicy policy;
  policy.timeout = repeats_.task_timeout;
  const Status done = fence.wait(policy);
  if (done) return {};
  device_.abandon(done.error());
  if (device_.stuck()) device::quarantine(kept);
  return make_error(done.error().code, "device {} while it was measured: {}", device_.info().name,
                    done.error().message);
}

Result<device::TaskTimes> Stopwatch::run(const std::shared_ptr<Prepared>& prepared) const {
  RETURN_IF_ERROR(check_cancelled());
  ASSIGN_OR_RETURN(const device::Fence fence,
                   device_.submit(*prepared->kernel, prepared->workload->bindings(), {}));
  RETURN_IF_ERROR(wait(fence, prepared));
  return device_.times(fence);
}

Result<Sample> Stopwatch::time(std::span<const std::shared_ptr<Prepared>> prepared,
                               std::span<const std::shared_ptr<Prepared>> before) const {
  std::vector<double> values;
  TimePoint begin{};
  for (int repeat = 0; repeat <= repeats_.most; ++repeat) {
    Duration sum{};
    for (const auto& one : before) RETURN_IF_ERROR(run(one));
    for (const auto& one : prepared) {
      ASSIGN_OR_RETURN(const device::TaskTimes times, run(one));
      sum += times.end - times.start;
      if (repeat == 0 && begin == TimePoint{}) begin = times.start;
      if (repeat > 0 && values.size() >= static_cast<size_t>(repeats_.least) &&
          times.end - begin > repeats_.budget) {
        return summarize(std::move(values));
      }
    }
    if (repeat == 0) continue;  // warms up
    values.push_back(to_us(sum) / static_cast<double>(prepared.size()));
    if (repeat >= repeats_.least && noise_of(summarize(values)) <= repeats_.noise) break;
  }
  return summarize(std::move(values));
}

}  // namespace troika::profile
