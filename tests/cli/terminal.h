// The built program on a terminal of its own, typed at by a test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troika {

class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& arguments);
  ~Terminal();  // ends the program if it still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys);  // "\x03" is Ctrl-C, "\x04" is Ctrl-D
  // Reads on until `text` has appeared after what was read before; false after 60 s or at the end.
  bool wait_for(const std::string& text);
  // The same for any `bytes` bytes.
  bool wait_for_output(size_t bytes);
  // The exit code once the program has ended; -1 after 60 s.
  int wait_for_end();

  const std::string& screen() const { return screen_; }

 private:
  bool read_some();

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

}  // namespace troika
