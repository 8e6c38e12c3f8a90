// A hint to the processor that this thread polls.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troika {

inline void cpu_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace troika
