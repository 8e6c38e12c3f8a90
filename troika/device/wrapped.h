// A device inside another one that adds something to it: a pace, a fault.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "troika/base/clock.h"
#include "troika/device/device.h"

namespace troika::device {

// Threads: any function at any time, as the outer device's control thread compiles and asks while
// its worker runs tasks.
class Wrapped {
 public:
  explicit Wrapped(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  bool supports(const graph::Graph& graph, graph::OpId op) const {
    return device_->supports(graph, op);
  }
  Result<std::unique_ptr<Kernel>> compile(const Program& program);

  // Runs one task to its end. Once abandoned, the error is the reason for that.
  Status run(const Kernel& kernel, const Bindings& bindings);

  // The outer device's numbers, with what the inner one copied, holds and computed.
  DeviceStats added_to(DeviceStats outer) const;

  // To be called before the outer device's queue is abandoned, for its worker waits for this one.
  void abandon(const Error& reason);
  std::optional<Error> abandoned() const;  // why, if it was
  // For the outer device's worker: lets time pass until `clock` shows that, or until abandoned.
  void pass_until(TimePoint until, const Clock& clock) const;
  bool stuck() const { return device_->stuck(); }

 private:
  mutable std::mutex device_mutex_;  // compile, submit and stats of the inner device
  mutable std::mutex reason_mutex_;
  std::optional<Error> reason_;
  const std::unique_ptr<Device> device_;
};

}  // namespace troika::device
