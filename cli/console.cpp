#include "cli/console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/text.h"

namespace troika::cli {
namespace {

// Of a file's or a driver's words in a line of ours.
constexpr size_t kMostOfALine = 4000;
constexpr std::string_view kClosedPipe = "the reader of standard output is gone";

// Whoever shares a pipe or terminal may have made it non-blocking. False if it cannot be waited
// for, or a signal asks to end.
bool waits_for_room(int fd) {
  pollfd waited{fd, POLLOUT, 0};
  while (!interrupted()) {
    const int n = poll(&waited, 1, 100);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) return true;
  }
  return false;
}

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && waits_for_room(fd)) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace

Console::Console() : stderr_is_terminal_(isatty(STDERR_FILENO) == 1) {}

Console::~Console() {
  if (log_fd_ >= 0) close(log_fd_);
}

Status Console::print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) return make_error(ErrorCode::kIo, "{}", kClosedPipe);
  if (error != 0) {
    return make_error(ErrorCode::kIo, "cannot write to standard output: {}", std::strerror(error));
  }
  return {};
}

void Console::warn(std::string_view line) {
  const std::string text = fmt::format("warning: {}\n", shortened(line, kMostOfALine));
  write_all(STDERR_FILENO, text);
  log(text);
}

void Console::note(std::string_view line) {
  const std::string text = shortened(line, kMostOfALine) + "\n";
  if (verbose_) write_all(STDERR_FILENO, text);
  log(text);
}

void Console::hint(std::string_view line) {
  if (!verbose_ && stderr_is_terminal_) {
    write_all(STDERR_FILENO, shortened(line, kMostOfALine) + "\n");
  }
  note(line);
}

void Console::status(std::string_view text) { write_all(STDERR_FILENO, text); }

Status Console::open_log(const std::string& path) {
  log_fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (log_fd_ < 0) {
    return make_error(ErrorCode::kIo, "--log-file: cannot open {}: {}", in_quotes(path),
                      std::strerror(errno));
  }
  return {};
}

void Console::log(std::string_view line) {
  if (log_fd_ >= 0) write_all(log_fd_, line);
}

bool is_closed_pipe(const Error& error) {
  return error.code == ErrorCode::kIo && error.message == kClosedPipe;
}

}  // namespace troika::cli
