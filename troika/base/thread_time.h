// Time that the calling thread has spent on a core: what control and polling cost.
#pragma once

#include "troika/base/clock.h"

namespace troika {

// CPU time of the calling thread since it was started; zero where the system does not tell.
Duration thread_cpu_time();

class ThreadTime {
 public:
  ThreadTime() : begin_(thread_cpu_time()) {}
  Duration passed() const { return thread_cpu_time() - begin_; }

 private:
  Duration begin_;
};

}  // namespace troika
