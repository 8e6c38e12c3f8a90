#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "troika/base/result.h"

namespace troika::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_signal(int) {
  if (flag.exchange(true)) _exit(exit_code(ErrorCode::kCancelled));
}

}  // namespace

void install_signal_handlers() {
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
void clear_interrupt() { flag.store(false); }

}  // namespace troika::cli
