#include "troika/runtime/rates.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>

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
