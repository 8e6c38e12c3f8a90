#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/interrupt.h"
#include "cli/program.h"

namespace {

// A closed standard stream would be taken by the next file opened, and written to.
void reserve_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  troika::cli::install_signal_handlers();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int code = troika::cli::run_program(
      arguments, [](const char* name) -> const char* { return std::getenv(name); });
  return code;
}
