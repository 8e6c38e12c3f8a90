#include "troika/device/wrapped.h"

#include <algorithm>
#include <thread>

namespace troika::device {
namespace {

// How often a device that sleeps looks whether it was abandoned.
constexpr Duration kSleepSlice = std::chrono::milliseconds(10);
// What a sleeping thread may wake up too late by; the rest is spent yielding.
constexpr Duration kWakeUp = std::chrono::microseconds(100);

}  // namespace

Result<std::unique_ptr<Kernel>> Wrapped::compile(const Program& program) {
  const std::lock_guard lock(device_mutex_);
  return device_->compile(program);
}

Status Wrapped::run(const Kernel& kernel, const Bindings& bindings) {
  Result<Fence> fence = [&] {
    const std::lock_guard lock(device_mutex_);
    return device_->submit(kernel, bindings, {});
  }();
  const Status done = fence ? fence->wait() : Status(tl::unexpected(fence.error()));
  if (done) return {};
  return tl::unexpected(abandoned().value_or(done.error()));
}

DeviceStats Wrapped::added_to(DeviceStats outer) const {
  const std::lock_guard lock(device_mutex_);
  const DeviceStats inner = device_->stats();
  outer.copies = inner.copies;
  outer.copy_bytes = inner.copy_bytes;
  outer.cpu += inner.cpu;
  outer.own_bytes = inner.own_bytes;
  return outer;
}

void Wrapped::abandon(const Error& reason) {
  {
    const std::lock_guard lock(reason_mutex_);
    if (!reason_) reason_ = reason;
  }
  device_->abandon(reason);
}

std::optional<Error> Wrapped::abandoned() const {
  const std::lock_guard lock(reason_mutex_);
  return reason_;
}

void Wrapped::pass_until(TimePoint until, const Clock& clock) const {
  for (TimePoint now = clock.now(); now < until && !abandoned(); now = clock.now()) {
    if (until - now > kWakeUp) {
      std::this_thread::sleep_for(std::min(until - now - kWakeUp, kSleepSlice));
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace troika::device
