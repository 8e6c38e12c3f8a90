// Ctrl-C: the first ends what is running, a second one ends the program at once.
#pragma once

#include <atomic>

namespace troika::cli {

// Installs the handlers of SIGINT and SIGTERM, and lets a closed pipe be an error of write()
// instead of a signal.
void install_signal_handlers();

// True from the first Ctrl-C until clear_interrupt(); Session::generate watches it.
std::atomic<bool>& interrupt_flag();
bool interrupted();
void clear_interrupt();

// Waits until read() of `fd` would not block. False as soon as interrupted(), also when that came
// before the call or another thread took the signal.
bool wait_for_input(int fd);

}  // namespace troika::cli
