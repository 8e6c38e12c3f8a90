#include "troika/device/supervised.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "troika/base/watched_time.h"
#include "troika/device/quarantine.h"

namespace troika::device {
namespace {

// How often a caller looks how long a compilation has taken.
constexpr Duration kLookInterval = std::chrono::milliseconds(50);
// More between two looks was no time in which anything could have been compiled.
constexpr Duration kLongestGap = 10 * kLookInterval;

using Compiled = Result<std::unique_ptr<Kernel>>;

Compiled compile_here(Device& device, const Program& program) {
  try {
    return device.compile(program);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kOutOfMemory, "device {}: no memory is left to compile for it",
                      device.info().name);
  }
}

// One compilation; kept alive by whoever comes back from it last.
class Compilation {
 public:
  explicit Compilation(Program program) : program_(std::move(program)) {}

  void run(Device& device) {
    Compiled compiled = compile_here(device, program_);
    const std::lock_guard lock(mutex_);
    compiled_ = std::move(compiled);
    ended_.notify_one();
  }

  // False: it has not ended within `patience`.
  bool wait(Duration patience) {
    WatchedTime waited(kLongestGap);
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kLookInterval, [this] { return compiled_.has_value(); })) {
      if (waited.look() > patience) return false;
    }
    return true;
  }

  Compiled take() { return std::move(*compiled_); }

 private:
  const Program program_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Compiled> compiled_;
};

class Supervised final : public Device {
 public:
  Supervised(std::unique_ptr<Device> device, Duration patience)
      : device_(std::move(device)), patience_(patience) {}

  ~Supervised() override {
    if (stuck()) quarantine(std::shared_ptr<Device>(std::move(device_)));
  }
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;

  const DeviceInfo& info() const override { return device_->info(); }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return device_->supports(graph, op);
  }

  // On a thread of its own, and not the device's: that one is bound to a core, and what a driver
  // starts would be, too.
  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    if (hangs_) return hanging();
    stats_before_ = device_->stats();
    const auto compilation = std::make_shared<Compilation>(program);
    std::thread thread;
    try {
      thread = std::thread([compilation, device = device_.get()] { compilation->run(*device); });
    } catch (const std::system_error&) {  // no thread can be had
      return compile_here(*device_, program);
    }
    if (compilation->wait(patience_)) {
      thread.join();
      return compilation->take();
    }
    thread.detach();
    hangs_ = true;
    device_->abandon(hanging().value());
    return hanging();
  }

  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    if (hangs_) return hanging();
    return device_->submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const override { return device_->times(fence); }
  DeviceStats stats() const override { return hangs_ ? stats_before_ : device_->stats(); }

  void abandon(Error reason) override { device_->abandon(std::move(reason)); }
  bool lost() const override { return hangs_ || device_->lost(); }
  bool stuck() const override { return hangs_ || device_->stuck(); }

 private:
  tl::unexpected<Error> hanging() const {
    return make_error(ErrorCode::kDeviceFailed,
                      "device {} hangs: it has not compiled a task in {:.0f} s", info().name,
                      to_seconds(patience_));
  }

  std::unique_ptr<Device> device_;
  const Duration patience_;
  std::atomic<bool> hangs_{false};  // in a compilation that is not waited for any more
  DeviceStats stats_before_;        // the latest compilation
};

}  // namespace

std::unique_ptr<Device> supervise(std::unique_ptr<Device> device, Duration patience) {
  return std::make_unique<Supervised>(std::move(device), patience);
}

}  // namespace troika::device
