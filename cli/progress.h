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
  Progress(Console& console, std::string what);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done, uint64_t all);

 private:
  Console& console_;
  std::string what_;
  TimePoint begun_;
  TimePoint shown_;
  bool bar_ = false;
};

}  // namespace troika::cli
