#include "troika/profile/peak_probe.h"

#include <sched.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
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

// What the threads of a measurement do in each of its tries, given their index. `prepare` is not
// timed.
struct Work {
  std::function<void(int)> prepare;
  std::function<void(int)> run;
  double units = 0;  // of all threads together
};

// Starts all threads or none: some alone would wait at a barrier for ever.
Status run_threads(int threads, const std::function<void(int)>& run) {
  std::atomic<int> go{0};
  std::vector<std::thread> pool;
  bool all_started = true;
  try {
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&run, &go, i] {
        go.wait(0);
        if (go.load() > 0) run(i);
      });
    }
  } catch (const std::exception&) {
    all_started = false;
  }
  go.store(all_started ? 1 : -1);
  go.notify_all();
  for (std::thread& thread : pool) thread.join();
  if (all_started) return {};
  return make_error(ErrorCode::kOutOfMemory, "cannot start {} threads; use fewer", threads);
}

// Units of work per second in the best try.
Result<double> measure(int threads, const Work& work, const std::atomic<bool>* cancel) {
  std::vector<Spans> spans(static_cast<size_t>(threads));
  // All leave after the same try: the one that comes last decides for all.
  bool stop = false;
  const auto decide = [&]() noexcept { stop = cancel != nullptr && cancel->load(); };
  std::barrier together(threads, decide);
  RETURN_IF_ERROR(run_threads(threads, [&](int index) {
    pin(index);
    for (Span& span : spans[static_cast<size_t>(index)]) {
      work.prepare(index);
      together.arrive_and_wait();
      if (stop) return;
      span.start = system_clock().now();
      work.run(index);
      span.end = system_clock().now();
    }
  }));
  if (stop) {
    return make_error(ErrorCode::kCancelled, "interrupted while measuring this machine's peak");
  }
  double best = 0;
  for (size_t i = 0; i < kTries; ++i) {
    Span all = spans[0][i];
    for (const Spans& of_thread : spans) {
      all.start = std::min(all.start, of_thread[i].start);
      all.end = std::max(all.end, of_thread[i].end);
    }
    best = std::max(best, work.units / std::max(to_seconds(all.end - all.start), 1e-9));
  }
  return best;
}

Status check_threads(int threads) {
  if (threads >= 1 && threads <= kMaxThreads) return {};
  return make_error(ErrorCode::kInvalidArgument, "cannot measure with {} threads; use 1 to {}",
                    threads, kMaxThreads);
}

// Pages of zeros from the system, given back at the end whatever the allocator would keep.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        bytes_(bytes) {}
  ~Pages() {
    if (valid()) munmap(start_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool valid() const { return start_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(start_); }

 private:
  void* start_;
  size_t bytes_;
};

// Leaves the memory in no cache. Whole pages; their content is lost.
void put_out_of_caches(std::byte* start, size_t bytes) {
#if defined(__x86_64__)
  // Such stores take a line out of every cache, far faster than CLFLUSH.
  const __m128i value = _mm_set1_epi8(1);
  for (size_t i = 0; i < bytes; i += sizeof value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(start + i), value);
  }
  _mm_sfence();
#else
  std::memset(start, 1, bytes);
#if defined(__aarch64__)
  constexpr size_t kLine = 64;  // lines are at least as long
  for (size_t i = 0; i < bytes; i += kLine) {
    asm volatile("dc civac, %0" : : "r"(start + i) : "memory");
  }
  asm volatile("dsb ish" : : : "memory");
#endif
#endif
}

// Several sums, so that loads and not additions set the pace.
uint64_t read_all(const std::byte* start, size_t bytes) {
  const auto* p = reinterpret_cast<const uint64_t*>(start);
  const size_t words = bytes / sizeof(uint64_t);
  std::array<uint64_t, 16> sums{};
  for (size_t i = 0; i + sums.size() <= words; i += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += p[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

Result<double> measure_read_gbps(int threads, int64_t bytes, const std::atomic<bool>* cancel) {
  RETURN_IF_ERROR(check_threads(threads));
  constexpr int64_t kStep = 4096;
  const int64_t each = bytes / threads / kStep * kStep;
  if (each <= 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "cannot measure reading {} bytes; use {} or more", bytes, threads * kStep);
  }
  const auto part_bytes = static_cast<size_t>(each);
  const Pages pages(part_bytes * static_cast<size_t>(threads));
  if (!pages.valid()) {
    return make_error(ErrorCode::kOutOfMemory, "cannot measure reading {} bytes; use fewer", bytes);
  }
  const auto part = [&](int i) { return pages.data() + part_bytes * static_cast<size_t>(i); };
  std::atomic<uint64_t> sink{0};
  Work work;
  // First touched by the thread that reads it, so that the memory is near it.
  work.prepare = [&](int i) { put_out_of_caches(part(i), part_bytes); };
  work.run = [&](int i) { sink += read_all(part(i), part_bytes); };
  work.units = static_cast<double>(each) * threads;
  ASSIGN_OR_RETURN(const double bytes_per_second, measure(threads, work, cancel));
  return bytes_per_second / 1e9;
}

Result<double> measure_fma_gflops(int threads, const std::atomic<bool>* cancel) {
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
  Work work;
  work.prepare = [](int) {};
  work.run = [&](int) { burst(rounds); };
  work.units = burst(1) * static_cast<double>(rounds) * threads;
  ASSIGN_OR_RETURN(const double per_second, measure(threads, work, cancel));
  return per_second / 1e9;
}

}  // namespace troika::profile
