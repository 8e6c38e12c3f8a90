#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "troika/base/result.h"

namespace troika::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// A signal that comes between a look at the flag and a call that waits leaves a byte here, and a
// wait for both ends. Made once; -1 if it could not be.
int wake_ends[2] = {-1, -1};

void on_signal(int) {
  if (flag.exchange(true)) _exit(exit_code(ErrorCode::kCancelled));
  const int saved = errno;
  // A full pipe wakes as well.
  [[maybe_unused]] const ssize_t written = write(wake_ends[1], "", 1);
  errno = saved;
}

}  // namespace

void install_signal_handlers() {
  if (wake_ends[0] < 0 && pipe2(wake_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    wake_ends[0] = wake_ends[1] = -1;
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);  // a write beyond ulimit -f then fails with an errno
}

std::atomic<bool>& interrupt_flag() { return flag; }
bool interrupted() { return flag.load(); }

void clear_interrupt() {
  // In this order a signal in between leaves the flag set, and none is lost.
  flag.store(false);
  char buffer[64];
  while (wake_ends[0] >= 0 && read(wake_ends[0], buffer, sizeof buffer) > 0) continue;
}

bool wait_for_input(int fd) {
  if (fd < 0) return true;  // read() tells what is wrong; poll() would wait
  pollfd waited[2] = {{fd, POLLIN, 0}, {wake_ends[0], POLLIN, 0}};
  const int timeout_ms = wake_ends[0] < 0 ? 100 : -1;
  while (!interrupted()) {
    const int n = poll(waited, 2, timeout_ms);
    if (n < 0 && errno != EINTR) return true;
    if (n > 0 && waited[0].revents != 0) return !interrupted();
  }
  return false;
}

}  // namespace troika::cli
