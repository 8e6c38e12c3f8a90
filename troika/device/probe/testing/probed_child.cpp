// What probe_test.cpp starts: opens the "device" that its last argument names, or does what no
// driver should.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "troika/device/conformance/testing/reference_device.h"
#include "troika/device/probe/probe.h"

namespace {

using namespace troika;
using device::conformance::testing::Fault;
using device::conformance::testing::ReferenceDevice;

int answer(const std::string& folder, const std::string& name,
           Result<std::unique_ptr<device::Device>> device) {
  const device::DeviceStore store(folder, "test");
  const std::string text = device::probe_answer(device, name, store);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout);
}

[[noreturn]] void hang() {
  while (true) pause();
}

[[noreturn]] void die(int signal_number) {
  signal(signal_number, SIG_DFL);  // a sanitizer's handler would exit
  raise(signal_number);
  std::_Exit(99);
}

// Leaves a process behind that keeps our streams open, and tells its number.
void leave_a_process(const std::string& folder) {
  const pid_t pid = fork();
  if (pid == 0) hang();
  std::FILE* file = std::fopen((folder + "/left").c_str(), "w");
  std::fprintf(file, "%d", static_cast<int>(pid));
  std::fclose(file);
}

int count_open_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > 2 && fcntl(fd, F_GETFD) != -1) ++count;
  }
  return count - 1;  // the folder's own
}

int spoiled_signals() {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  return (sigismember(&mask, SIGUSR1) == 1 ? 1 : 0) + (action.sa_handler != SIG_DFL ? 2 : 0);
}

int act(const std::string& folder, const std::string& name) {
  if (name == "good") return answer(folder, name, std::make_unique<ReferenceDevice>());
  if (name == "wrong") {
    return answer(folder, name, std::make_unique<ReferenceDevice>(Fault::kGivesNan));
  }
  if (name == "refused") {
    return answer(folder, name, make_error(ErrorCode::kNotFound, "no such chip in this machine"));
  }
  if (name == "leaves") {
    leave_a_process(folder);
    return answer(folder, name, std::make_unique<ReferenceDevice>());
  }
  if (name == "hangs") hang();
  if (name == "hangs-with-another") {
    leave_a_process(folder);
    hang();
  }
  if (name == "segfault") die(SIGSEGV);
  if (name == "abort") {
    std::fputs("loading\nfirmware 3 is wanted, 2 is there\n\n", stderr);
    die(SIGABRT);
  }
  if (name == "exit") return 77;
  if (name == "silent") return 0;
  if (name == "noise") return std::puts("{\"troika_probe\": 1, \"opened\": true}") < 0;
  if (name == "endless") {
    while (std::puts("and so on") >= 0) continue;
  }
  if (name == "endless-errors") {
    while (std::fputs("and so on\n", stderr) >= 0) continue;
  }
  if (name == "files") return count_open_files();
  if (name == "signals") return spoiled_signals();
  if (name == "input") return std::getchar() == EOF ? 0 : 1;
  if (name == "environment") return std::getenv("TROIKA_PROBE_TEST") != nullptr ? 5 : 6;
  return 98;
}

}  // namespace

// FOLDER NAME
int main(int argc, char** argv) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  return argc == 3 ? act(argv[1], argv[2]) : 97;
}
