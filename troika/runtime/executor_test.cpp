#include "troika/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "troika/device/cpu/cpu_device.h"
#include "troika/device/testing/forwarding_device.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::runtime {
namespace {

using graph::Stage;
using model::TensorType;
using model::testing::TinyModel;
using Tokens = std::vector<model::TokenId>;

constexpr int64_t kContext = 128;
constexpr int64_t kMaxRows = 64;
constexpr int64_t kMaxLogitRows = 8;
constexpr int64_t kBlocks = 6;  // of 32 tokens: fewer than two full contexts

// A `cpu` device that fails when told to, by error or in the middle of a pass.
class Fragile final : public device::testing::ForwardingDevice {
 public:
  explicit Fragile(const std::string& name) : ForwardingDevice(open_cpu(name)) {}
  // Refuses every submission from the `after`-th one on.
  void refuse(int after) { left_ = after; }

  bool supports(const graph::Graph& graph, graph::OpId op) const override {
    return supported && ForwardingDevice::supports(graph, op);
  }
  Result<device::Fence> submit(const device::Kernel& kernel, const device::Bindings& bindings,
                               std::span<const device::Fence> waits,
                               const device::SubmitOptions& options) override {
    if (left_ == 0) return make_error(ErrorCode::kDeviceFailed, "fell out");
    if (left_ > 0) --left_;
    return ForwardingDevice::submit(kernel, bindings, waits, options);
  }

  bool supported = true;

 private:
  static std::unique_ptr<device::Device> open_cpu(const std::string& name) {
    device::cpu::CpuOptions options;
    options.name = name;
    options.threads = 2;
    return *device::cpu::open(options);
  }

  int left_ = -1;
};

class Runner {
 public:
  explicit Runner(const TinyModel& tiny = TinyModel(), int n_devices = 1, bool trace = false)
      : model_([&] {
          const auto bytes = tiny.bytes();
          return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
        }()),
        graph_(*graph::build(model_)) {
    plan_ = plan::single_device_plan(graph_, "a", kMaxRows, "f32");
    plan_.buckets.insert(plan_.buckets.begin(), plan_.buckets[0]);
    plan_.buckets[0].max_rows = 4;
    for (int i = 0; i < n_devices; ++i) {
      devices_.push_back(std::make_unique<Fragile>(i == 0 ? "a" : "b"));
    }
    if (n_devices == 2) {
      plan_.devices.push_back("b");
      for (auto& bucket : plan_.buckets)
        bucket.placements[3].parts[0].device = plan_.devices[1];  // attention
    }
    device::KvLayout layout;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = kBlocks;
    cache_.emplace(std::move(*KvCache::create(layout, kContext, pool_)));
    options_.max_logit_rows = kMaxLogitRows;
    options_.trace = trace;
    executor_ = std::move(*create());
  }

  Result<std::unique_ptr<Executor>> create() {
    return Executor::create(graph_, plan_, devices_, pool_, *cache_, options_);
  }
  // A sound device in the place of a lost one, and a new executor.
  void replace_device(size_t i) {
    executor_.reset();  // its kernels are the device's
    devices_[i] = std::make_unique<Fragile>(devices_[i]->info().name);
    executor_ = std::move(*create());
  }
  Fragile& device(size_t i) { return static_cast<Fragile&>(*devices_[i]); }
  KvCache& cache() { return *cache_; }
  Executor& executor() { return *executor_; }
  plan::Plan& plan() { return plan_; }
  ExecutorOptions& options() { return options_; }
  const model::Model& model() const { return model_; }

  Result<Logits> feed(SequenceId sequence, const Tokens& tokens,
                      WantLogits want = WantLogits::kLast) {
    return executor_->forward({{{sequence, tokens, want}}});
  }

 private:
  model::Model model_;
  graph::Graph graph_;
  plan::Plan plan_;
  device::SharedPool pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::optional<KvCache> cache_;
  ExecutorOptions options_;
  std::unique_ptr<Executor> executor_;
};

Tokens some_tokens(int count) {
  Tokens tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((i * 37 + 11) % 300);
  return tokens;
}

void expect_refused(Runner& runner, const Batch& batch, ErrorCode code) {
  const int64_t free = runner.cache().free_blocks();
  std::vector<int64_t> lengths;
  for (SequenceId s = 0; runner.cache().exists(s); ++s) lengths.push_back(runner.cache().length(s));
  const auto logits = runner.executor().forward(batch);
  ASSERT_FALSE(logits.has_value());
  EXPECT_EQ(to_string(logits.error().code), to_string(code)) << logits.error().message;
  EXPECT_EQ(runner.cache().free_blocks(), free);
  for (size_t s = 0; s < lengths.size(); ++s) {
    EXPECT_EQ(runner.cache().length(static_cast<SequenceId>(s)), lengths[s]);
  }
}

TEST(Executor, InvalidBatchesChangeNothing) {
  Runner runner;
  const SequenceId one = runner.cache().new_sequence();
  const SequenceId two = runner.cache().new_sequence();
  ASSERT_TRUE(runner.feed(one, some_tokens(5)).has_value());
  const Tokens good = some_tokens(3);
  const Tokens none;
  const auto invalid = ErrorCode::kInvalidArgument;
  expect_refused(runner, {}, invalid);
  expect_refused(runner, {{{one, none, WantLogits::kLast}}}, invalid);
  expect_refused(runner, {{{two, good, WantLogits::kLast}, {one, none, WantLogits::kLast}}},
                 invalid);
  for (const SequenceId absent : {-1, 2, INT32_MAX, INT32_MIN}) {
    expect_refused(runner, {{{two, good, WantLogits::kLast}, {absent, good, WantLogits::kLast}}},
                   invalid);
  }
  expect_refused(runner,
                 {{{one, good, WantLogits::kLast},
                   {two, good, WantLogits::kLast},
                   {one, good, WantLogits::kLast}}},
                 invalid);
  for (const model::TokenId bad : {-1, 300, INT32_MAX, INT32_MIN}) {
    const Tokens tokens = {1, 2, bad};
    expect_refused(runner, {{{one, good, WantLogits::kLast}, {two, tokens, WantLogits::kLast}}},
                   invalid);
  }
  const Tokens long_text = some_tokens(kMaxRows + 1);
  expect_refused(runner, {{{one, long_text, WantLogits::kLast}}}, invalid);
  const Tokens half = some_tokens(kMaxRows / 2 + 1);
  expect_refused(runner, {{{one, half, WantLogits::kLast}, {two, half, WantLogits::kLast}}},
                 invalid);
  const Tokens nine = some_tokens(kMaxLogitRows + 1);
  expect_refused(runner, {{{one, nine, WantLogits::kAll}}}, invalid);
  // A released sequence is none.
  runner.cache().release(two);
  const auto gone = runner.feed(two, good);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, invalid);
  ASSERT_TRUE(runner.feed(one, good).has_value());
  EXPECT_EQ(runner.cache().length(one), 8);
}

TEST(Executor, AFullContextOrCacheChangesNothing) {
  Runner runner;
  const SequenceId one = runner.cache().new_sequence();
  const SequenceId two = runner.cache().new_sequence();
  ASSERT_TRUE(runner.feed(one, some_tokens(64)).has_value());
  ASSERT_TRUE(runner.feed(one, some_tokens(63)).has_value());
  const Tokens pair = some_tokens(2);
  expect_refused(runner, {{{two, pair, WantLogits::kLast}, {one, pair, WantLogits::kLast}}},
                 ErrorCode::kContextFull);
  ASSERT_TRUE(runner.feed(one, some_tokens(1)).has_value());
  EXPECT_EQ(runner.cache().length(one), kContext);
  // Four of six blocks are in use: the first new sequence gets the last two, the other one none.
  const SequenceId three = runner.cache().new_sequence();
  const Tokens many = some_tokens(33);
  const Tokens few = some_tokens(1);
  expect_refused(runner, {{{two, many, WantLogits::kLast}, {three, few, WantLogits::kLast}}},
                 ErrorCode::kContextFull);
  ASSERT_TRUE(runner.feed(two, many).has_value());
}

TEST(Executor, NumbersThatOverflowAreReported) {
  TinyModel tiny(TensorType::kF32);
  auto& norm = tiny.tensor("blk.0.attn_norm.weight").data;
  const float huge = std::numeric_limits<float>::max();
  for (size_t i = 0; i < norm.size(); i += sizeof(huge)) std::memcpy(&norm[i], &huge, sizeof(huge));
  Runner runner(tiny);
  const SequenceId one = runner.cache().new_sequence();
  const Tokens tokens = some_tokens(40);
  expect_refused(runner, {{{one, tokens, WantLogits::kLast}}}, ErrorCode::kInvalidData);
  const auto logits = runner.feed(one, tokens);
  EXPECT_NE(logits.error().message.find("position 39"), std::string::npos)
      << logits.error().message;
}

// What is computed again on other devices goes on where the sequence was.
TEST(Executor, ADeviceThatRefusesLeavesTheSequenceUsable) {
  for (const int after : {0, 1, 3}) {
    Runner runner;
    const SequenceId one = runner.cache().new_sequence();
    const Tokens tokens = some_tokens(40);
    runner.device(0).refuse(after);
    expect_refused(runner, {{{one, tokens, WantLogits::kLast}}}, ErrorCode::kDeviceFailed);
    ASSERT_EQ(runner.executor().lost_devices().size(), 1u);
    EXPECT_EQ(runner.executor().lost_devices()[0].index, 0u);
    EXPECT_EQ(runner.executor().lost_devices()[0].reason.message, "fell out");
    runner.replace_device(0);
    const auto logits = runner.feed(one, tokens);
    ASSERT_TRUE(logits.has_value());
    const std::vector<float> got(logits->row(0).begin(), logits->row(0).end());
    Runner fresh;
    const auto expected = fresh.feed(fresh.cache().new_sequence(), tokens);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected->row(0).begin()));
  }
}

TEST(Executor, AnAbandonedDeviceEndsThePassWithItsReason) {
  Runner runner(TinyModel(), 2);
  const SequenceId one = runner.cache().new_sequence();
  ASSERT_TRUE(runner.feed(one, some_tokens(5)).has_value());
  runner.device(1).abandon({ErrorCode::kDeviceFailed, "pulled out"});
  const Tokens tokens = some_tokens(40);
  expect_refused(runner, {{{one, tokens, WantLogits::kLast}}}, ErrorCode::kDeviceFailed);
}

TEST(Executor, TwoDevicesGiveTheSameBitsAsOne) {
  Runner one;
  Runner two(TinyModel(), 2);
  const SequenceId a = one.cache().new_sequence();
  const SequenceId b = two.cache().new_sequence();
  for (const int count : {1, 40, 3, 5}) {
    const Tokens tokens = some_tokens(count);
    const auto expected = one.feed(a, tokens);
    const auto got = two.feed(b, tokens);
    ASSERT_TRUE(expected && got);
    for (size_t i = 0; i < 300; ++i) ASSERT_EQ(got->row(0)[i], expected->row(0)[i]);
  }
  const auto work = two.executor().device_work();
  ASSERT_EQ(work.size(), 2u);
  EXPECT_GT(work[0].macs, 0);
  EXPECT_GT(work[1].macs, 0);
  EXPECT_EQ(work[0].macs + work[1].macs, one.executor().device_work()[0].macs);
}

// q and o 64x64, k and v 64x32, gate, up and down 64x96; head 64x300; two products of 4 heads of 16
// for each key.
constexpr int64_t kLayerMacs = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96;
constexpr int64_t kHeadMacs = 64 * 300;
constexpr int64_t kKeyMacs = 2 * 4 * 16;

TEST(Executor, CountsWorkAsByHand) {
  Runner runner;
  const Work work = runner.executor().work(10, 20);
  const int64_t keys = 10 * 20 + 55;  // 21 + 22 + ... + 30
  EXPECT_EQ(work.macs, 10 * kLayerMacs + kHeadMacs + keys * kKeyMacs);
  EXPECT_EQ(work.weight_bytes, (kLayerMacs + kHeadMacs) / 32 * 18 + 3 * 64 * 4);
  // K and V of 2 heads of 16 floats: 30 tokens read, 10 written.
  EXPECT_EQ(work.kv_bytes, (30 + 10) * 2 * 2 * 16 * 4);

  const SequenceId one = runner.cache().new_sequence();
  const SequenceId two = runner.cache().new_sequence();
  ASSERT_TRUE(runner.feed(one, some_tokens(20), WantLogits::kNone).has_value());
  EXPECT_EQ(runner.executor().device_work()[0].macs, 20 * kLayerMacs + 210 * kKeyMacs);
  runner.executor().reset_work();
  EXPECT_EQ(runner.executor().device_work()[0].macs, 0);
  ASSERT_TRUE(runner.feed(one, some_tokens(10)).has_value());
  EXPECT_EQ(runner.executor().device_work()[0].macs, work.macs);
  EXPECT_GT(runner.executor().device_work()[0].busy, Duration::zero());
  EXPECT_GE(runner.executor().device_work()[0].wait, Duration::zero());
  // Two sequences in one pass: 31 keys for the first, 1 + 2 for the other; three rows of logits.
  runner.executor().reset_work();
  const Tokens a = some_tokens(1);
  const Tokens b = some_tokens(2);
  ASSERT_TRUE(runner.executor()
                  .forward({{{one, a, WantLogits::kLast}, {two, b, WantLogits::kAll}}})
                  .has_value());
  EXPECT_EQ(runner.executor().device_work()[0].macs,
            3 * kLayerMacs + 3 * kHeadMacs + (31 + 3) * kKeyMacs);
}

TEST(Executor, TracesEveryTask) {
  Runner runner(TinyModel(), 2, true);
  const SequenceId one = runner.cache().new_sequence();
  ASSERT_TRUE(runner.feed(one, some_tokens(7), WantLogits::kNone).has_value());
  ASSERT_TRUE(runner.feed(one, some_tokens(2)).has_value());
  const auto& events = runner.executor().trace().events;
  const std::vector<std::string> names = {"input",      "G1 layer 0", "A layer 0",
                                          "G2 layer 0", "input",      "G1 layer 0",
                                          "A layer 0",  "G2 layer 0", "head"};
  ASSERT_EQ(events.size(), names.size());
  int64_t macs = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& event = events[i];
    SCOPED_TRACE(event.name);
    EXPECT_EQ(event.name, names[i]);
    EXPECT_EQ(event.device, event.name == "A layer 0" ? "b" : "a");
    EXPECT_EQ(event.pass, i < 4 ? 0 : 1);
    EXPECT_EQ(event.rows, i < 4 ? 7 : event.name == "head" ? 1 : 2);
    EXPECT_EQ(event.layer, event.name == "input" || event.name == "head" ? -1 : 0);
    EXPECT_GT(event.bytes, 0);
    EXPECT_LE(event.queued, event.start);
    EXPECT_LE(event.start, event.end);
    if (i > 0) {
      EXPECT_GE(event.start, events[i - 1].end);  // each one reads what the last one wrote
    }
    macs += event.macs;
  }
  EXPECT_EQ(macs,
            runner.executor().device_work()[0].macs + runner.executor().device_work()[1].macs);
  EXPECT_FALSE(runner.executor().trace().simulated);
}

TEST(Executor, WrongPlansAndDevicesAreRefused) {
  const auto code = [](Runner& runner) { return runner.create().error().code; };
  {
    Runner runner;
    runner.plan().buckets[0].placements.pop_back();
    EXPECT_EQ(code(runner), ErrorCode::kInvalidData);
  }
  {
    Runner runner;
    runner.plan().devices.push_back("b");
    EXPECT_EQ(code(runner), ErrorCode::kInvalidArgument);
  }
  {
    Runner runner(TinyModel(), 2);
    std::swap(runner.plan().devices[0], runner.plan().devices[1]);
    EXPECT_EQ(code(runner), ErrorCode::kInvalidArgument);
  }
  {
    Runner runner;
    runner.device(0).supported = false;
    EXPECT_EQ(code(runner), ErrorCode::kUnsupported);
  }
  {
    Runner runner;
    runner.options().max_logit_rows = 0;
    EXPECT_EQ(code(runner), ErrorCode::kInvalidArgument);
  }
  {
    Runner runner;
    runner.options().max_logit_rows = INT64_MAX;  // more than rows are never asked for
    EXPECT_TRUE(runner.create().has_value());
  }
}

// A plan for any number of rows takes memory for the longest pass only.
TEST(Executor, APlanForMorePassesThanThereAreTakesNoMemoryForThem) {
  Runner runner;
  runner.plan().buckets.push_back(runner.plan().buckets.back());
  runner.plan().buckets[1].max_rows = plan::kMaxPlanRows - 1;
  runner.plan().buckets[2].max_rows = plan::kMaxPlanRows;
  runner.options().max_rows = kMaxRows;
  const auto executor = runner.create();
  ASSERT_TRUE(executor.has_value()) << executor.error().message;
  EXPECT_EQ((*executor)->max_rows(), kMaxRows);
  const SequenceId one = runner.cache().new_sequence();
  const Tokens most = some_tokens(kMaxRows);
  ASSERT_TRUE((*executor)->forward({{{one, most, WantLogits::kLast}}}).has_value());
  const Tokens more = some_tokens(kMaxRows + 1);
  const auto refused = (*executor)->forward({{{one, more, WantLogits::kLast}}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("1 to 64 rows, not 65"));
}

}  // namespace
}  // namespace troika::runtime
