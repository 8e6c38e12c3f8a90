// Runs another program to its end, whatever it does: crash, hang, or write without end.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"

namespace troika::device {

struct ChildCommand {
  std::vector<std::string> arguments;  // the program's path first
  Duration time_limit = std::chrono::seconds(10);
  size_t max_output_bytes = size_t{1} << 20;
  std::function<bool()> cancelled;  // asked every few milliseconds, if given
};

struct ChildOutcome {
  enum class End { kExited, kSignalled, kTimedOut, kWroteTooMuch };
  End end = End::kExited;
  int code = 0;            // exit code or signal
  std::string output;      // its standard output
  std::string last_words;  // the end of its standard error
};

// The child has this process's environment, nothing to read, and no open file of ours. It and what
// it started are gone afterwards. Any thread, several at a time.
// kIo if it cannot be started, kCancelled.
Result<ChildOutcome> run_child(const ChildCommand& command);

}  // namespace troika::device
