// Progress of something slow on stderr: a bar on a terminal, else a line now and then under -v.
#pragma once

#include <cstdint>
#include <string>

#include "cli/console.h"
#include "troika/base/clock.h"

namespace troika::cli {

// Not shared between threads.
class Progress {
 public:
  // `time_left`: says how long it will still take, by the speed since it was first told.
  Progress(Console& console, std::string what, bool time_left = false);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done, uint64_t all);

 private:
  std::string left(double part, TimePoint now);

  Console& console_;
  std::string what_;
  TimePoint begun_;
  TimePoint shown_;
  bool bar_ = false;
  bool time_left_ = false;
  double first_part_ = -1;  // that was told, when something was done before
  TimePoint first_told_;
};

}  // namespace troika::cli
