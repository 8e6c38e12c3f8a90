// Oversubscription: two devices of several threads each share one core, and wait for each other all
// the time. Whoever can go on has to get the core.
#include <gtest/gtest.h>

#include <optional>

#include "troika/base/cores.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/model/testing/tiny_model.h"
#include "troika/plan/default_plan.h"
#include "troika/runtime/executor.h"

namespace troika::runtime {
namespace {

constexpr int64_t kRows = 24;
constexpr int kSteps = 40;
constexpr int kThreads = 3;

class Oversubscription : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<int> allowed = allowed_cores();
    ASSERT_FALSE(allowed.empty());
    for (const char* name : {"a", "b"}) {
      device::cpu::CpuOptions options;
      options.name = name;
      options.cores.assign(kThreads, allowed.front());
      auto device = device::cpu::open(options);
      ASSERT_TRUE(device.has_value()) << device.error().message;
      devices_.push_back(std::move(*device));
    }
  }

  plan::Plan paired() const {
    std::vector<device::DeviceInfo> infos;
    for (const auto& device : devices_) infos.push_back(device->info());
    plan::DefaultPlanOptions options;
    options.max_rows = kRows;
    options.split = *plan::parse_split("paired:1/1", 2);
    return plan::default_plan(graph_, infos, std::vector<plan::DeviceRates>(2, {1, 1}), options);
  }

  // A prompt and then token after token; the last logits, and how often one waited for the other.
  std::vector<float> run(const plan::Plan& plan, size_t n_devices, Sync sync, int64_t& joins) {
    device::SharedPool pool;
    device::KvLayout layout;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = (kRows + kSteps) / device::kKvBlockTokens + 1;
    auto cache = KvCache::create(layout, kRows + kSteps, pool);
    EXPECT_TRUE(cache.has_value()) << cache.error().message;
    ExecutorOptions options;
    options.sync = sync;
    auto executor =
        Executor::create(graph_, plan, std::span(devices_).first(n_devices), pool, *cache, options);
    EXPECT_TRUE(executor.has_value()) << executor.error().message;
    const SequenceId sequence = cache->new_sequence();
    std::vector<float> last;
    for (int step = 0; step <= kSteps; ++step) {
      const std::vector<model::TokenId> tokens(static_cast<size_t>(step == 0 ? kRows : 1), step);
      const auto logits = (*executor)->forward({{{sequence, tokens, WantLogits::kLast}}});
      EXPECT_TRUE(logits.has_value()) << logits.error().message;
      if (!logits) return last;
      last.assign(logits->row(0).begin(), logits->row(0).end());
    }
    for (const DeviceWork& work : (*executor)->device_work()) joins += work.joins;
    return last;
  }

  const model::Model model_ = [] {
    const auto bytes = model::testing::TinyModel().bytes();
    return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  }();
  const graph::Graph graph_ = *graph::build(model_);
  std::vector<std::unique_ptr<device::Device>> devices_;
};

TEST_F(Oversubscription, TwoDevicesOnOneCoreEndWithTheSameAnswer) {
  int64_t none = 0;
  const auto expected =
      run(plan::single_device_plan(graph_, "a", kRows, "f32"), 1, Sync::kQueue, none);
  ASSERT_FALSE(expected.empty());
  for (const Sync sync : {Sync::kQueue, Sync::kPredict, Sync::kBlocking}) {
    SCOPED_TRACE(to_string(sync));
    int64_t joins = 0;
    const auto logits = run(paired(), 2, sync, joins);
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-4);
    // With the other ways the caller waits instead.
    if (sync == Sync::kQueue) {
      EXPECT_GT(joins, kSteps);
    }
  }
}

}  // namespace
}  // namespace troika::runtime
