#include "troika/device/wrapped.h"

namespace troika::device {

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

}  // namespace troika::device
