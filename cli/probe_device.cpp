// troika probe-device: what the program starts as a child to try a device. Not for people: it is in
// no help and no completion, and its answer is for device::probe().
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "cli/device_prober.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

Status write_answer(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return make_error(ErrorCode::kIo, "cannot write the answer: {}",
                        std::generic_category().message(errno));
    }
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

class ProbeDevice final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.text("--device", device_, "DEVICE", "The one to open and check");
    flags.integer("--threads", threads_, {1, 1 << 16}, "Cores that it may use");
    flags.text("--kernels", kernels_, "NAME", "Kernels of the cpu");
    flags.toggle("--int8-activations", int8_activations_, "Inputs of products in 8 bits");
    flags.text("--cache", cache_, "FOLDER", "Where checks are remembered (default: nowhere)");
  }

  Status run(Console&) override {
    // A crash is expected here: it leaves no file behind, and no child outlives its parent.
    const rlimit nothing{0, 0};
    setrlimit(RLIMIT_CORE, &nothing);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // What a driver prints is not the answer.
    const int answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(STDERR_FILENO, STDOUT_FILENO);

    std::string key = device_;
    auto device = open(key);
    const std::string text = device::probe_answer(device, key, device_store(cache_));
    if (device && (*device)->stuck()) {
      // Closing it would wait for ever.
      static_cast<void>(write_answer(answer, text));
      std::_Exit(0);
    }
    // A driver that crashes when it is closed is as bad as any.
    if (device) device->reset();
    return write_answer(answer, text);
  }

 private:
  // Sets `key` to the device's.
  Result<std::unique_ptr<device::Device>> open(std::string& key) const {
    ASSIGN_OR_RETURN(const auto specs, device::parse_device_string(device_));
    key = device_key(specs.front(), int8_activations_);
    device::OpenOptions options;
    options.threads = static_cast<int>(threads_);
    options.kernels = kernels_;
    options.int8_activations = int8_activations_;
    ASSIGN_OR_RETURN(auto devices, device::open_devices(device_, options));
    return std::move(devices.front());
  }

  std::string device_;
  std::string kernels_;
  std::string cache_;
  bool int8_activations_ = false;
  int64_t threads_ = 1;
};

}  // namespace

std::unique_ptr<Verb> make_probe_device() { return std::make_unique<ProbeDevice>(); }

}  // namespace troika::cli
