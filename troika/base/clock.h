// The one source of time. Everything that waits or measures takes a Clock, so that tests and the
// simulator can run on virtual time.
#pragma once

#include <chrono>

namespace troika {

using Duration = std::chrono::nanoseconds;
// Time since the clock's own start; only differences mean anything.
using TimePoint = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

// The machine's monotonic clock. Lives for the whole program; any thread may call it.
const Clock& system_clock();

inline double to_us(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
inline double to_ms(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace troika
