// What this machine could do at best: the two peaks that every measured speed is compared with.
#pragma once

#include <atomic>
#include <cstdint>

#include "troika/base/result.h"

namespace troika::profile {

// Both start `threads` threads, each pinned to one of the process's allowed CPUs, let them begin
// together, and take the best of 15 tries, each from the first thread's start to the last one's
// end: well under a second in all, unless gigabytes are read. GB = 1e9 bytes. Fail if a thread or
// the memory cannot be had, and with kCancelled once `cancel`, which a signal handler may set, is
// true.

// Bytes read from memory per second: every thread reads its own part of `bytes` once per try, in
// order. Counts the bytes read, not what the caches fetch besides. On x86 and Arm what is read is
// put out of the caches before each try, whatever their size; elsewhere take several times the size
// of the last-level cache. All memory is given back at the end.
Result<double> measure_read_gbps(int threads, int64_t bytes,
                                 const std::atomic<bool>* cancel = nullptr);

// FP32 operations per second, 2 for each multiply-add, in independent multiply-adds on registers
// with the widest instruction set that the kernels have for this machine.
Result<double> measure_fma_gflops(int threads, const std::atomic<bool>* cancel = nullptr);

}  // namespace troika::profile
