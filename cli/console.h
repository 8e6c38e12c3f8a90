// Where the program writes: answers and JSON to stdout, everything else to stderr.
#pragma once

#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::cli {

// Not shared between threads.
class Console {
 public:
  Console();
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // To stdout, at once. kIo when it cannot be written; see is_closed_pipe().
  Status print(std::string_view text);

  // One line to stderr, whatever the verbosity.
  void warn(std::string_view line);
  // One line of detail to stderr under -v, and to the log file.
  void note(std::string_view line);
  // As note(), and on a terminal without -v too.
  void hint(std::string_view line);
  // Text to stderr as it is (progress, statistics).
  void status(std::string_view text);

  void set_verbose(bool verbose) { verbose_ = verbose; }
  // Notes and warnings also go to this file, appended.
  Status open_log(const std::string& path);

  bool verbose() const { return verbose_; }
  bool stderr_is_terminal() const { return stderr_is_terminal_; }

 private:
  void log(std::string_view line);

  bool verbose_ = false;
  bool stderr_is_terminal_ = false;
  int log_fd_ = -1;
};

// True for the error of a reader that went away (`troika run | head`): no reason to complain.
bool is_closed_pipe(const Error& error);

}  // namespace troika::cli
