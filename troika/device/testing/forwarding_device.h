// For tests: a device that hands everything to another one, but for what a test overrides.
#pragma once

#include <memory>
#include <utility>

#include "troika/device/device.h"

namespace troika::device::testing {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return inner_->supports(graph, op);
  }
  Result<std::unique_ptr<Kernel>> compile(const Program& program) override {
    return inner_->compile(program);
  }
  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    return inner_->submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const override { return inner_->times(fence); }
  DeviceStats stats() const override { return inner_->stats(); }
  void abandon(Error reason) override { inner_->abandon(std::move(reason)); }
  bool lost() const override { return inner_->lost(); }
  bool stuck() const override { return inner_->stuck(); }

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace troika::device::testing
