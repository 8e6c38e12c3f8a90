#include "troika/base/thread_time.h"

#include <pthread.h>

#include <ctime>

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

Duration cpu_time_of(std::thread& thread) {
  clockid_t clock{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return Duration::zero();
  return time_on(clock);
}

}  // namespace troika
