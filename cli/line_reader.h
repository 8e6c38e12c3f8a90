// Lines from a file descriptor, with Ctrl-C told apart from the end.
#pragma once

#include <string>

#include "troika/base/result.h"

namespace troika::cli {

// Not shared between threads; borrows the descriptor.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  enum class Kind { kLine, kEnd, kInterrupted };
  struct Line {
    Kind kind = Kind::kLine;
    std::string text;  // without its end of line; "\r\n" counts as one
  };

  // Waits for a whole line. The last one may lack its end.
  Result<Line> next();

 private:
  int fd_;
  bool end_ = false;
  std::string pending_;
};

}  // namespace troika::cli
