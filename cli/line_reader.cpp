#include "cli/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/interrupt.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxLineBytes = 16u << 20;  // more than any context holds

}  // namespace

Result<LineReader::Line> LineReader::next() {
  size_t searched = 0;
  for (;;) {
    if (interrupted()) {
      pending_.clear();  // typed before the Ctrl-C, so given up
      return Line{Kind::kInterrupted, ""};
    }
    const size_t newline = pending_.find('\n', searched);
    if (newline != std::string::npos || (end_ && !pending_.empty())) {
      std::string text = pending_.substr(0, newline);
      pending_.erase(0, newline == std::string::npos ? newline : newline + 1);
      if (text.ends_with('\r')) text.pop_back();
      return Line{Kind::kLine, std::move(text)};
    }
    if (end_) return Line{Kind::kEnd, ""};
    searched = pending_.size();
    if (searched > kMaxLineBytes) {
      return make_error(ErrorCode::kInvalidArgument, "a line has more than {} MiB",
                        kMaxLineBytes >> 20);
    }
    if (!wait_for_input(fd_)) continue;
    char buffer[1 << 16];
    const ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return make_error(ErrorCode::kIo, "cannot read: {}", std::strerror(errno));
    if (n == 0) end_ = true;
    pending_.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace troika::cli
