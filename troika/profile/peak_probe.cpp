#include "troika/profile/peak_probe.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "troika/base/clock.h"
#include "troika/device/cpu/kernels/kernels.h"

namespace troika::profile {
namespace {

// Short tries and the best of them: a try that something else disturbed says nothing about a peak.
constexpr int kTries = 15;
constexpr int kMaxThreads = 1024;

struct Span {
  TimePoint start{}, end{};
};
using Spans = std::array<Span, kTries>;

// To the index-th CPU that this process may use, again from the first when they run out.
void pin(int index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int count = CPU_COUNT(&allowed);
  if (count == 0) return;
  int skip = index % count;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) == 0 || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Units of work per second in the best try: `prepare` and `work` run on every thread.
Result<double> measure(int threads, double units_per_try, const std::function<void(int)>& prepare,
                       const std::function<void(int)>& work) {
  std::vector<Spans> spans(static_cast<size_t>(threads));
  std::barrier together(threads);
  // Threads that cannot all be started must not wait for each other at the barrier.
  std::atomic<int> go{0};
  const auto run = [&](int index) {
    go.wait(0);
    if (go.load() < 0) return;
    pin(index);
    prepare(index);
    for (Span& span : spans[static_cast<size_t>(index)]) {
      together.arrive_and_wait();
      span.start = system_clock().now();
      work(index);
      span.end = system_clock().now();
    }
  };
  std::vector<std::thread> pool;
  bool all_started = true;
  try {
    for (int i = 0; i < threads; ++i) pool.emplace_back(run, i);
  } catch (const std::exception&) {
    all_started = false;
  }
  go.store(all_started ? 1 : -1);
  go.notify_all();
  for (std::thread& thread : pool) thread.join();
  if (!all_started) {
    return make_error(ErrorCode::kOutOfMemory, "cannot start {} threads; use fewer", threads);
  }
  double best = 0;
  for (size_t i = 0; i < kTries; ++i) {
    Span all = spans[0][i];
    for (const Spans& of_thread : spans) {
      all.start = std::min(all.start, of_thread[i].start);
      all.end = std::max(all.end, of_thread[i].end);
    }
    best = std::max(best, units_per_try / std::max(to_seconds(all.end - all.start), 1e-9));
  }
  return best;
}

Status check_threads(int threads) {
  if (threads >= 1 && threads <= kMaxThreads) return {};
  return make_error(ErrorCode::kInvalidArgument, "cannot measure with {} threads; use 1 to {}",
                    threads, kMaxThreads);
}

// Several sums, so that loads and not additions set the pace.
uint64_t read_all(const uint64_t* p, size_t words) {
  std::array<uint64_t, 16> sums{};
  for (size_t i = 0; i + sums.size() <= words; i += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += p[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

Result<double> measure_read_gbps(int threads, int64_t bytes) {
  RETURN_IF_ERROR(check_threads(threads));
  constexpr int64_t kStep = 4096;
  const int64_t each = bytes / threads / kStep * kStep;
  if (each <= 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "cannot measure reading {} bytes; use {} or more", bytes, threads * kStep);
  }
  const size_t words = static_cast<size_t>(each) / sizeof(uint64_t);
  std::vector<std::unique_ptr<uint64_t[]>> parts;
  for (int i = 0; i < threads; ++i) {
    parts.emplace_back(new (std::nothrow) uint64_t[words]);
    if (parts.back() == nullptr) {
      return make_error(ErrorCode::kOutOfMemory, "cannot measure reading {} bytes; use fewer",
                        bytes);
    }
  }
  std::atomic<uint64_t> sink{0};
  const auto part = [&](int i) { return parts[static_cast<size_t>(i)].get(); };
  // First touched by the thread that reads it, so that the memory is near it.
  ASSIGN_OR_RETURN(const double bytes_per_second,
                   measure(
                       threads, static_cast<double>(each) * threads,
                       [&](int i) { std::fill_n(part(i), words, static_cast<uint64_t>(i)); },
                       [&](int i) { sink += read_all(part(i), words); }));
  return bytes_per_second / 1e9;
}

Result<double> measure_fma_gflops(int threads) {
  RETURN_IF_ERROR(check_threads(threads));
  const device::cpu::KernelTable& kernels = *device::cpu::available_kernels().front();
  // Values that stay finite: x <- x / 2 + 1.
  const auto burst = [&](int64_t rounds) {
    std::array<float, 3> sink{1.0f, 0.5f, 1.0f};
    return kernels.fma_burst(rounds, sink.data());
  };
  // As many rounds as take about 3 ms.
  constexpr int64_t kCalibration = 20000;
  const TimePoint start = system_clock().now();
  burst(kCalibration);
  const double seconds = std::max(to_seconds(system_clock().now() - start), 1e-6);
  const auto rounds = static_cast<int64_t>(std::min(0.003 / seconds, 1000.0) * kCalibration) + 1;
  const double operations = burst(1) * static_cast<double>(rounds);
  ASSIGN_OR_RETURN(const double per_second,
                   measure(
                       threads, operations * threads, [](int) {}, [&](int) { burst(rounds); }));
  return per_second / 1e9;
}

}  // namespace troika::profile
