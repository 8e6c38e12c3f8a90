// How long something has gone on, as told by somebody who looks at it again and again: the time in
// which it could go on. Nothing goes on while the process stands still (Ctrl-Z, a paused
// container), and what is watched stands still with it.
#pragma once

#include <algorithm>

#include "troika/base/clock.h"

namespace troika {

// Not shared among threads.
class WatchedTime {
 public:
  // A gap between two looks counts for `longest_gap` at most: several times what lies between looks
  // on a busy machine. `clock` must outlive it.
  explicit WatchedTime(Duration longest_gap, const Clock& clock = system_clock())
      : longest_gap_(longest_gap), clock_(&clock), last_look_(clock.now()) {}

  void restart() {
    watched_ = Duration::zero();
    last_look_ = clock_->now();
  }

  // Since the beginning or restart().
  Duration look() {
    const TimePoint now = clock_->now();
    watched_ += std::min(now - last_look_, longest_gap_);
    last_look_ = now;
    return watched_;
  }

 private:
  Duration longest_gap_;
  const Clock* clock_;
  TimePoint last_look_;
  Duration watched_{};
};

}  // namespace troika
