// Time that the calling thread has spent on a core: what control and polling cost.
#pragma once

#include <thread>

#include "troika/base/clock.h"

namespace troika {

// CPU time of the calling thread since it was started; zero where the system does not tell.
Duration thread_cpu_time();

// Of all threads of this process, those that have ended included.
Duration process_cpu_time();
// Of another thread that has not been joined yet.
Duration cpu_time_of(std::thread& thread);

// How long the threads of this process that run now were ready and had no core, since each began;
// zero where the system does not tell.
Duration time_without_core();

class ThreadTime {
 public:
  ThreadTime() : begin_(thread_cpu_time()) {}
  Duration passed() const { return thread_cpu_time() - begin_; }

 private:
  Duration begin_;
};

}  // namespace troika
