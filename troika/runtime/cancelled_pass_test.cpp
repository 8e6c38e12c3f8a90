// Passes that are not wanted any more while a slow device computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "troika/device/cpu/cpu_device.h"
#include "troika/device/work_queue.h"
#include "troika/device/wrapped.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/plan/default_plan.h"
#include "troika/runtime/executor.h"

namespace troika::runtime {
namespace {

constexpr int64_t kRows = 40;

struct SlowKernel final : device::Kernel {
  bool is_slow = false;
  std::unique_ptr<device::Kernel> wrapped;
};

// `cpu`, but tasks with an operator of one kind take `pause` more.
class SlowDevice final : public device::QueuedDevice {
 public:
  explicit SlowDevice(graph::OpKind slow) : slow_(slow) {
    info_.name = "slow";
    info_.threads = 1;
  }

  const device::DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return wrapped_.supports(graph, op);
  }
  Result<std::unique_ptr<device::Kernel>> compile(const device::Program& program) override {
    auto kernel = std::make_unique<SlowKernel>();
    kernel->is_slow = std::any_of(program.ops.begin(), program.ops.end(), [&](graph::OpId id) {
      return program.graph->op(id).kind == slow_;
    });
    ASSIGN_OR_RETURN(kernel->wrapped, wrapped_.compile(program));
    return kernel;
  }
  device::DeviceStats stats() const override { return wrapped_.added_to(stats_of_queue()); }

  std::atomic<Duration> pause{Duration::zero()};
  std::atomic<int> ran{0};  // tasks

 private:
  static std::unique_ptr<device::Device> open_cpu() {
    device::cpu::CpuOptions options;
    options.threads = 1;
    return std::move(*device::cpu::open(options));
  }
  device::DeviceStats stats_of_queue() const { return queue_.stats(); }
  device::WorkQueue& queue() override { return queue_; }

  const graph::OpKind slow_;
  device::DeviceInfo info_;
  device::Wrapped wrapped_{open_cpu()};
  device::WorkQueue queue_{"slow",
                           {},
                           system_clock(),
                           [this](const device::Kernel& kernel, const device::Bindings& bindings) {
                             ++ran;
                             const auto& slow = static_cast<const SlowKernel&>(kernel);
                             if (slow.is_slow) std::this_thread::sleep_for(pause.load());
                             return wrapped_.run(*slow.wrapped, bindings);
                           }};
};

class CancelledPass : public ::testing::Test {
 protected:
  void open(graph::OpKind slow) {
    devices_.push_back(std::make_unique<SlowDevice>(slow));
    device::KvLayout layout;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = 4;
    cache_.emplace(std::move(*KvCache::create(layout, 2 * kRows, pool_)));
    ExecutorOptions options;
    options.cancelled = [this] { return cancelled_; };
    auto executor = Executor::create(graph_, plan::single_device_plan(graph_, "slow", kRows, "f32"),
                                     devices_, pool_, *cache_, options);
    ASSERT_TRUE(executor.has_value()) << executor.error().message;
    executor_ = std::move(*executor);
    sequence_ = cache_->new_sequence();
  }

  SlowDevice& device() { return static_cast<SlowDevice&>(*devices_[0]); }

  Result<Logits> run() {
    cache_->truncate(sequence_, 0);
    return executor_->forward({{{sequence_, tokens_, WantLogits::kLast}}});
  }

  // Asked for the first time a while after the slow task has begun.
  void expect_cancelled_and_usable() {
    cancelled_ = true;
    const auto stopped = run();
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled) << stopped.error().message;
    EXPECT_TRUE(executor_->lost_devices().empty());
    EXPECT_FALSE(device().lost());
    EXPECT_EQ(cache_->length(sequence_), 0);
    cancelled_ = false;
    device().pause = Duration::zero();
    const auto again = run();
    EXPECT_TRUE(again.has_value()) << again.error().message;
  }

 private:
  const model::Model model_ = [] {
    const auto bytes = model::testing::TinyModel().bytes();
    return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  }();
  const graph::Graph graph_ = *graph::build(model_);
  const std::vector<model::TokenId> tokens_ = std::vector<model::TokenId>(kRows, 7);
  device::SharedPool pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::optional<KvCache> cache_;
  std::unique_ptr<Executor> executor_;
  SequenceId sequence_ = 0;
  bool cancelled_ = false;
};

// Longer than what a device that hangs is given.
TEST_F(CancelledPass, ADeviceThatHasShownNothingYetIsWaitedFor) {
  open(graph::OpKind::kRope);
  device().pause = std::chrono::milliseconds(1300);
  expect_cancelled_and_usable();
  // First the input and G1, which was slow; what was queued behind it was skipped.
  EXPECT_EQ(device().ran, 2 + 5);
}

TEST_F(CancelledPass, ADeviceIsGivenTheTimeThatItHasShown) {
  open(graph::OpKind::kSiluMul);
  device().pause = std::chrono::milliseconds(900);
  ASSERT_TRUE(run().has_value());
  device().pause = std::chrono::milliseconds(1300);
  expect_cancelled_and_usable();
}

}  // namespace
}  // namespace troika::runtime
