// When things happened on the device, on the clock of the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "troika/base/clock.h"

namespace troika::device::opencl {

// The device's clock counts nanoseconds from some time on. How far the two are apart is learnt from
// ends that were seen: the program's time of seeing one is later by the delay of hearing of it, so
// that the least difference is the best. It is learnt anew again and again, for clocks drift.
class DeviceClock {
 public:
  void note(uint64_t device_end, TimePoint seen) {
    const int64_t difference = seen.count() - static_cast<int64_t>(device_end);
    least_ = std::min(least_, difference);
    if (++notes_ % kRenewal != 0) return;
    older_ = least_;
    least_ = difference;
  }

  // After a note().
  TimePoint at(uint64_t device_time) const {
    const int64_t apart = std::min(least_, older_);
    return TimePoint(static_cast<int64_t>(device_time) + apart);
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int kRenewal = 2048;

  int64_t least_ = kNever;
  int64_t older_ = kNever;
  int notes_ = 0;
};

}  // namespace troika::device::opencl
