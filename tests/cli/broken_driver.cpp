// Loaded before the program by devices_test.cpp, in the place of a vendor's driver: does harm as
// soon as a device is probed, in the way that BROKEN_DRIVER names. The program itself is left
// alone.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

void say(int fd, const char* text) {
  if (write(fd, text, std::strlen(text)) < 0) std::abort();
}

__attribute__((constructor)) void do_harm() {
  std::ifstream stream("/proc/self/cmdline");
  const std::string line((std::istreambuf_iterator<char>(stream)), {});
  const char* way = std::getenv("BROKEN_DRIVER");
  if (way == nullptr || line.find("probe-device") == std::string::npos) return;
  const std::string harm = way;
  if (harm == "crash") raise(SIGSEGV);
  if (harm == "abort") {
    say(STDERR_FILENO, "driver: firmware 7 is required, found 6\n");
    std::abort();
  }
  if (harm == "hang") {
    while (true) pause();
  }
  if (harm == "exit") _exit(139);
  if (harm == "noise") say(STDOUT_FILENO, "driver 1.0 loaded\n");
}

}  // namespace
