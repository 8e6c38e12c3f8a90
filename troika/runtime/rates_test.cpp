#include "troika/runtime/rates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "troika/device/cpu/cpu_device.h"
#include "troika/device/testing/forwarding_device.h"
#include "troika/device/work_queue.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::runtime {
namespace {

struct LateKernel final : device::Kernel {};

// Its first task lasts until finish(), and then writes to all of its tensors.
class LateDevice final : public device::Device {
 public:
  LateDevice()
      : queue_("late", {}, system_clock(), [this](const auto&, const auto& bindings) {
          go_on_.get_future().wait();
          for (const device::TensorView& view : bindings.tensors) std::memset(view.data, 0, 1);
          wrote_.set_value();
          return Status();
        }) {
    info_.name = "late";
  }

  // Returns once it has written.
  void finish() {
    go_on_.set_value();
    wrote_.get_future().wait();
  }

  const device::DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }
  Result<std::unique_ptr<device::Kernel>> compile(const device::Program&) override {
    return std::unique_ptr<device::Kernel>(std::make_unique<LateKernel>());
  }
  Result<device::Fence> submit(const device::Kernel& kernel, const device::Bindings& bindings,
                               std::span<const device::Fence> waits,
                               const device::SubmitOptions& options) override {
    return queue_.submit(kernel, bindings, waits, options);
  }
  device::TaskTimes times(const device::Fence& fence) const override { return queue_.times(fence); }
  device::DeviceStats stats() const override { return queue_.stats(); }
  void abandon(Error reason) override { queue_.abandon(std::move(reason)); }
  bool lost() const override { return queue_.lost(); }
  bool stuck() const override { return queue_.stuck(); }

 private:
  device::DeviceInfo info_;
  std::promise<void> go_on_;
  std::promise<void> wrote_;
  device::WorkQueue queue_;
};

graph::Graph tiny_graph(const model::Model& model) { return *graph::build(model); }

model::Model tiny_model() {
  const auto bytes = model::testing::TinyModel().bytes();
  return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
}

// Takes as long as a device must be silent to be given up: ten seconds.
TEST(Rates, ADeviceThatComesBackLateFindsItsMemoryStillThere) {
  const model::Model model = tiny_model();
  const graph::Graph graph = tiny_graph(model);
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(std::make_unique<LateDevice>());
  const auto rates = measure_rates(graph, devices, {});
  ASSERT_FALSE(rates.has_value());
  EXPECT_NE(rates.error().message.find("late hangs"), std::string::npos) << rates.error().message;
  EXPECT_TRUE(devices[0]->stuck());
  static_cast<LateDevice&>(*devices[0]).finish();
}

// `cpu` with what it cannot compute.
class PartialDevice final : public device::testing::ForwardingDevice {
 public:
  PartialDevice(std::string name, graph::OpKind lacks)
      : ForwardingDevice(open_cpu()), lacks_(lacks), info_(ForwardingDevice::info()) {
    info_.name = std::move(name);
  }

  const device::DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return graph.op(op).kind != lacks_ && ForwardingDevice::supports(graph, op);
  }
  Result<std::unique_ptr<device::Kernel>> compile(const device::Program& program) override {
    for (const graph::OpId op : program.ops) {
      if (program.graph->op(op).kind == lacks_) {
        return make_error(ErrorCode::kUnsupported, "{} lacks {}", info_.name,
                          graph::to_string(lacks_));
      }
    }
    return ForwardingDevice::compile(program);
  }

 private:
  static std::unique_ptr<device::Device> open_cpu() {
    device::cpu::CpuOptions options;
    options.threads = 1;
    return *device::cpu::open(options);
  }

  graph::OpKind lacks_;
  device::DeviceInfo info_;
};

TEST(Rates, OfADeviceThatLacksAnOperatorAreMeasuredBesideTheOthers) {
  const model::Model model = tiny_model();
  const graph::Graph graph = tiny_graph(model);
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(std::make_unique<PartialDevice>("a", graph::OpKind::kAttention));
  devices.push_back(std::make_unique<PartialDevice>("b", graph::OpKind::kRmsNorm));
  RatesOptions options;
  options.budget = std::chrono::milliseconds(50);
  const auto rates = measure_rates(graph, devices, options);
  ASSERT_TRUE(rates.has_value()) << rates.error().message;
  ASSERT_EQ(rates->size(), 2u);
  // A norm's stage goes to the other device with it.
  EXPECT_GT((*rates)[0].mlp, 1);
  EXPECT_GT((*rates)[1].attention, 1);
  for (const plan::DeviceRates& rate : *rates) EXPECT_GT(rate.prefill, 1);
}

TEST(Rates, WhatNoDeviceComputesIsAnError) {
  const model::Model model = tiny_model();
  const graph::Graph graph = tiny_graph(model);
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(std::make_unique<PartialDevice>("a", graph::OpKind::kAttention));
  devices.push_back(std::make_unique<PartialDevice>("b", graph::OpKind::kAttention));
  const auto rates = measure_rates(graph, devices, {});
  ASSERT_FALSE(rates.has_value());
  EXPECT_EQ(rates.error().code, ErrorCode::kUnsupported);
}

TEST(Rates, EndWhenCancelled) {
  const model::Model model = tiny_model();
  const graph::Graph graph = tiny_graph(model);
  std::vector<std::unique_ptr<device::Device>> devices;
  devices.push_back(std::make_unique<LateDevice>());
  RatesOptions options;
  options.cancelled = [] { return true; };
  const auto rates = measure_rates(graph, devices, options);
  ASSERT_FALSE(rates.has_value());
  EXPECT_EQ(rates.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace troika::runtime
