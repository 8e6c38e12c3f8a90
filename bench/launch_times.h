// What each kernel of a pass takes on the device, by events of the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troika::bench {

// Stands between the program and the driver while it lives: queues tell times, and while it records
// each launch has an event. One at a time; from before a device is opened until after it is closed.
class LaunchTimes {
 public:
  LaunchTimes();
  ~LaunchTimes();
  LaunchTimes(const LaunchTimes&) = delete;
  LaunchTimes& operator=(const LaunchTimes&) = delete;

  // From here on, what was recorded before is forgotten.
  void start();
  void stop();
  // When the last launch since start() was queued, in seconds of the system's clock, and what the
  // driver's calls took since then.
  double last_queued() const;
  double driver_seconds() const;
  // Launches since start(), also without events.
  int64_t launches() const;

  struct Kind {
    std::string name;  // "product_one 264 x 512": groups and work-items of each
    int64_t count = 0;
    double us = 0;   // of all
    double gap = 0;  // between the end of what was before and the start, of all
  };
  // By time, of the launches recorded; after a wait for all of them.
  std::vector<Kind> kinds() const;
  // From the start of the first to the end of the last, in us.
  double span() const;
  // The longest time between two launches, in us.
  double longest_gap() const;
};

}  // namespace troika::bench
