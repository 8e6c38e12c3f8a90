#include "troika/base/thread_time.h"

#include <pthread.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troika {
namespace {

Duration time_on(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return Duration::zero();
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Duration thread_cpu_time() { return time_on(CLOCK_THREAD_CPUTIME_ID); }

Duration process_cpu_time() { return time_on(CLOCK_PROCESS_CPUTIME_ID); }

Duration time_without_core() {
  Duration sum{};
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream file(at->path() / "schedstat");
    int64_t on_core = 0;
    int64_t ready = 0;
    if (file >> on_core >> ready) sum += Duration(ready);
  }
  return sum;
}

Duration cpu_time_of(std::thread& thread) {
  clockid_t clock{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return Duration::zero();
  return time_on(clock);
}

}  // namespace troika
