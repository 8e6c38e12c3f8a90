#include "tests/cli/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace troika {
namespace {

constexpr std::chrono::seconds kPatience{60};

bool expired(std::chrono::steady_clock::time_point begin) {
  return std::chrono::steady_clock::now() - begin > kPatience;
}

}  // namespace

Terminal::Terminal(const std::vector<std::string>& arguments) {
  fd_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd_ < 0 || grantpt(fd_) != 0 || unlockpt(fd_) != 0) return;
  char name[128];
  if (ptsname_r(fd_, name, sizeof name) != 0) return;
  std::vector<std::string> strings = {TROIKA_PROGRAM};
  strings.insert(strings.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& text : strings) argv.push_back(text.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  setsid();
  const int side = open(name, O_RDWR);
  ioctl(side, TIOCSCTTY, 0);
  for (int stream = 0; stream <= 2; ++stream) dup2(side, stream);
  execv(argv[0], argv.data());
  _exit(127);
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (fd_ >= 0) close(fd_);
}

void Terminal::type(const std::string& keys) {
  size_t written = 0;
  while (written < keys.size()) {
    const ssize_t n = write(fd_, keys.data() + written, keys.size() - written);
    if (n <= 0) return;
    written += static_cast<size_t>(n);
  }
}

bool Terminal::read_some() {
  pollfd end{fd_, POLLIN, 0};
  if (poll(&end, 1, 50) <= 0) return true;
  char buffer[4096];
  const ssize_t n = read(fd_, buffer, sizeof buffer);
  if (n <= 0) return false;  // the program's side is closed
  screen_.append(buffer, static_cast<size_t>(n));
  return true;
}

bool Terminal::wait_for(const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const size_t at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (expired(begin) || !read_some()) return false;
  }
}

bool Terminal::wait_for_output(size_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  while (screen_.size() < seen_ + bytes) {
    if (expired(begin) || !read_some()) return false;
  }
  seen_ += bytes;
  return true;
}

int Terminal::wait_for_end() {
  const auto begin = std::chrono::steady_clock::now();
  while (!expired(begin)) {
    read_some();
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) continue;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return -1;
}

}  // namespace troika
