// Plans that chunk, order, join and gather, each seen in the trace, the counters and the logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/testing/forwarding_device.h"
#include "troika/runtime/executor.h"

namespace troika::runtime {
namespace {

using graph::Stage;
using plan::Cut;
using plan::Placement;
using plan::Plan;

constexpr int64_t kRows = 64;

// A `cpu` device of which other facts are told.
class Disguised final : public device::testing::ForwardingDevice {
 public:
  explicit Disguised(const std::string& name)
      : ForwardingDevice(open_cpu(name)), facts(ForwardingDevice::info()) {}
  device::DeviceInfo facts;

  const device::DeviceInfo& info() const override { return facts; }

 private:
  static std::unique_ptr<device::Device> open_cpu(const std::string& name) {
    device::cpu::CpuOptions options;
    options.name = name;
    return *device::cpu::open(options);
  }
};

struct Outcome {
  std::vector<float> logits;  // of all rows
  std::vector<TraceEvent> events;
  int64_t gather_bytes = 0;
};

class PlansTest : public ::testing::Test {
 protected:
  // Two layers, 4 heads.
  PlansTest()
      : model_(*model::Model::load(repository_path("tests/models/q4_1-narrow-mlp.gguf"))),
        graph_(*graph::build(model_)) {
    for (const char* name : {"a", "b"}) devices_.push_back(std::make_unique<Disguised>(name));
    layout_.n_layers = graph_.n_layers;
    layout_.n_kv_heads = graph_.n_kv_heads;
    layout_.head_dim = graph_.head_dim;
    layout_.n_blocks = 8;
    for (int64_t i = 0; i < kRows; ++i) {
      tokens_.push_back(static_cast<model::TokenId>((i * 37 + 11) % graph_.n_vocab));
    }
  }

  Disguised& device(size_t i) { return static_cast<Disguised&>(*devices_[i]); }

  // Everything on a, attention on b.
  Plan plan_of(std::vector<int64_t> chunks) const {
    Plan plan = plan::single_device_plan(graph_, "a", kRows, "f32");
    plan.devices = {"a", "b"};
    plan.buckets[0].chunks = std::move(chunks);
    stage(plan, Stage::kAttention).parts = {{"b"}};
    return plan;
  }
  static Placement& stage(Plan& plan, Stage wanted) {
    auto& placements = plan.buckets[0].placements;
    return *std::find_if(placements.begin(), placements.end(),
                         [&](const Placement& p) { return p.stage == wanted && p.op.empty(); });
  }
  static void cut_all(Plan& plan, Cut cut) {
    for (Placement& placement : plan.buckets[0].placements) {
      const bool fits = (cut != Cut::kK || placement.stage != Stage::kAttention) &&
                        (cut != Cut::kActivationCentric || placement.stage != Stage::kHead) &&
                        placement.stage != Stage::kInput;
      if (!fits) continue;
      placement.cut = cut;
      placement.parts = {{"a", 0.5}, {"b", 0.5}};
    }
  }

  // A pass of all rows, or of each of these numbers of rows of a sequence of its own.
  Outcome run(const Plan& plan, const std::vector<int64_t>& passes = {kRows}) {
    Outcome outcome;
    device::SharedPool pool;
    auto cache = KvCache::create(layout_, kRows, pool);
    EXPECT_TRUE(cache.has_value());
    const auto executor = Executor::create(graph_, plan, devices_, pool, *cache,
                                           {.max_logit_rows = kRows, .trace = true});
    EXPECT_TRUE(executor.has_value()) << executor.error().message;
    if (!executor) return outcome;
    for (const int64_t rows : passes) {
      const SequenceId sequence = cache->new_sequence();
      const auto logits = (*executor)->forward(
          {{{sequence, std::span(tokens_).first(static_cast<size_t>(rows)), WantLogits::kAll}}});
      EXPECT_TRUE(logits.has_value()) << logits.error().message;
      if (!logits) return outcome;
      outcome.logits.assign(logits->data, logits->data + logits->rows * logits->n_vocab);
      cache->release(sequence);
    }
    outcome.events = (*executor)->trace().events;
    outcome.gather_bytes = (*executor)->control_work().gather_bytes;
    return outcome;
  }

  std::vector<float> alone() {
    Plan plan = plan_of({});
    stage(plan, Stage::kAttention).parts = {{"a"}};
    return run(plan).logits;
  }

  // "A 0 1": attention of layer 0 for chunk 1; in the order in which a device did it.
  static std::vector<std::string> done_by(const Outcome& outcome, const std::string& device) {
    std::vector<TraceEvent> events = outcome.events;
    std::erase_if(events, [&](const TraceEvent& e) { return e.device != device || e.layer < 0; });
    std::stable_sort(events.begin(), events.end(),
                     [](const TraceEvent& x, const TraceEvent& y) { return x.start < y.start; });
    std::vector<std::string> done;
    for (const TraceEvent& e : events) {
      done.push_back(fmt::format("{} {} {}", e.stage, e.layer, e.chunk));
    }
    return done;
  }

  model::Model model_;
  graph::Graph graph_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  device::KvLayout layout_;
  std::vector<model::TokenId> tokens_;
};

TEST_F(PlansTest, DevicesKeepThePlannedOrder) {
  const std::vector<float> expected = alone();
  Plan plan = plan_of({32});
  auto& order = plan.buckets[0].order;
  // The second chunk's products come first where they can.
  order = {{Stage::kG1, 0, 0, 1, 1},        {Stage::kG1, 0, 0, 0, 0},
           {Stage::kAttention, 0, 0, 1, 1}, {Stage::kAttention, 0, 0, 0, 0},
           {Stage::kG2, 0, 0, 1, 1},        {Stage::kG2, 0, 0, 0, 0},
           {std::nullopt, 1, 1, 0, 0},      {std::nullopt, 1, 1, 1, 1}};
  const Outcome outcome = run(plan);
  EXPECT_EQ(done_by(outcome, "a"),
            (std::vector<std::string>{"G1 0 1", "G1 0 0", "G2 0 1", "G2 0 0", "G1 1 0", "G2 1 0",
                                      "G1 1 1", "G2 1 1"}));
  EXPECT_EQ(done_by(outcome, "b"), (std::vector<std::string>{"A 0 1", "A 0 0", "A 1 0", "A 1 1"}));
  EXPECT_EQ(outcome.logits, expected);
}

TEST_F(PlansTest, SeveralChunksAreInFlight) {
  const std::vector<float> expected = alone();
  Plan plan = plan_of({16});
  plan.buckets[0].in_flight = 2;
  Outcome outcome = run(plan);
  EXPECT_EQ(done_by(outcome, "b"), (std::vector<std::string>{"A 0 0", "A 0 1", "A 1 0", "A 1 1",
                                                             "A 0 2", "A 0 3", "A 1 2", "A 1 3"}));
  EXPECT_EQ(outcome.logits, expected);
  plan.buckets[0].in_flight = 0;
  plan.buckets[0].order_rule = plan::OrderRule::kWavefront;
  outcome = run(plan);
  EXPECT_EQ(done_by(outcome, "a"),
            (std::vector<std::string>{"G1 0 0", "G1 0 1", "G2 0 0", "G1 0 2", "G1 1 0", "G2 0 1",
                                      "G1 0 3", "G1 1 1", "G2 0 2", "G2 1 0", "G1 1 2", "G2 0 3",
                                      "G2 1 1", "G1 1 3", "G2 1 2", "G2 1 3"}));
  EXPECT_EQ(outcome.logits, expected);
}

TEST_F(PlansTest, ChunksTakeTurnsByProducts) {
  const std::vector<float> expected = alone();
  for (const int32_t lag : {0, 1, 4, 7, 30}) {
    for (const int32_t joined : {1, 2}) {
      Plan plan = plan_of({16});
      plan.buckets[0].order_rule = plan::OrderRule::kProducts;
      plan.buckets[0].lag = lag;
      stage(plan, Stage::kG2).join_chunks = joined;
      EXPECT_EQ(run(plan).logits, expected) << lag;
    }
  }
  Plan plan = plan_of({32});
  plan.buckets[0].order_rule = plan::OrderRule::kProducts;
  plan.buckets[0].lag = 4;
  const Outcome outcome = run(plan);
  const std::vector<std::string> done = done_by(outcome, "a");
  const auto first = [&](const std::string& what) {
    return std::find(done.begin(), done.end(), what) - done.begin();
  };
  // The second chunk begins while the first one is in the middle of its layer.
  EXPECT_LT(first("G2 0 0"), first("G1 0 1") + 2);
  EXPECT_LT(first("G1 0 1"), first("G1 1 0"));
  EXPECT_EQ(done_by(outcome, "b"), (std::vector<std::string>{"A 0 0", "A 0 1", "A 1 0", "A 1 1"}));
}

TEST_F(PlansTest, OneTaskComputesJoinedChunks) {
  const std::vector<float> expected = alone();
  for (const auto& stages : std::vector<std::vector<Stage>>{
           {Stage::kG2},
           {Stage::kG1},
           {Stage::kInput, Stage::kG1, Stage::kG2},
           {Stage::kAttention},
           {Stage::kInput, Stage::kG1, Stage::kAttention, Stage::kG2}}) {
    Plan plan = plan_of({20, 10, 34});
    for (const Stage joined : stages) stage(plan, joined).join_chunks = 2;
    const Outcome outcome = run(plan);
    EXPECT_EQ(outcome.logits, expected);
    int joint = 0;
    for (const TraceEvent& event : outcome.events) {
      const bool joins = std::any_of(stages.begin(), stages.end(), [&](Stage s) {
        return event.stage == to_string(s) && event.chunk == 0;
      });
      EXPECT_EQ(event.name.ends_with(" chunks 0-1"), joins) << event.name;
      if (!joins) continue;
      ++joint;
      EXPECT_EQ(event.rows, 30) << event.name;
      EXPECT_EQ(event.row_begin, 0);
    }
    EXPECT_GE(joint, 2);
    EXPECT_EQ(outcome.gather_bytes, 0);
  }
}

TEST_F(PlansTest, ChunksMayBeOfAnySize) {
  const std::vector<float> expected = alone();
  const Outcome outcome = run(plan_of({5, 40, 11}));
  std::vector<int64_t> rows;
  for (const TraceEvent& event : outcome.events) {
    if (event.name == "A layer 1") rows.push_back(event.rows);
  }
  EXPECT_EQ(rows, (std::vector<int64_t>{5, 40, 11, 8}));  // the last size repeats
  EXPECT_EQ(outcome.logits, expected);
}

TEST_F(PlansTest, AChunkMayHaveSharesOfItsOwn) {
  const std::vector<float> expected = alone();
  Plan plan = plan_of({32});
  Placement& g2 = stage(plan, Stage::kG2);
  g2.cut = Cut::kActivationCentric;
  g2.parts = {{"a", 0.5}, {"b", 0.5}};
  Placement second = g2;
  second.chunk = 1;
  second.parts = {{"a", 0.25}, {"b", 0.75}};
  plan.buckets[0].placements.push_back(second);
  const Outcome outcome = run(plan);
  EXPECT_EQ(outcome.logits, expected);
  // Several tasks work on the same rows where blocks take turns.
  std::set<std::tuple<std::string, int32_t, int64_t>> seen;
  std::map<std::pair<std::string, int32_t>, int64_t> rows;
  for (const TraceEvent& event : outcome.events) {
    if (event.name != "G2 layer 0") continue;
    const bool is_new = seen.insert({event.device, event.chunk, event.row_begin}).second;
    if (is_new) rows[{event.device, event.chunk}] += event.rows;
  }
  EXPECT_EQ((rows[{"a", 0}]), 16);
  EXPECT_EQ((rows[{"b", 0}]), 16);
  EXPECT_EQ((rows[{"a", 1}]), 8);
  EXPECT_EQ((rows[{"b", 1}]), 24);
}

// All cuts, in chunks and joined, on devices that share memory.
TEST_F(PlansTest, OnUnifiedMemoryNothingIsCopied) {
  ASSERT_TRUE(device(0).info().unified_memory && device(1).info().unified_memory);
  for (const Cut cut : {Cut::kNone, Cut::kWeightCentric, Cut::kActivationCentric, Cut::kHybrid,
                        Cut::kK, Cut::kPaired}) {
    for (const int32_t join : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, join {}", to_string(cut), join));
      Plan plan = plan_of({16});
      if (cut != Cut::kNone) cut_all(plan, cut);
      stage(plan, Stage::kG1).join_chunks = join;
      stage(plan, Stage::kG2).join_chunks = join;
      const Outcome outcome = run(plan);
      EXPECT_EQ(outcome.gather_bytes, 0);
      for (const TraceEvent& event : outcome.events) EXPECT_EQ(event.copy_bytes, 0) << event.name;
    }
  }
  for (const auto& device : devices_) {
    EXPECT_GT(device->stats().tasks, 0);
    EXPECT_EQ(device->stats().copies, 0);
    EXPECT_EQ(device->stats().copy_bytes, 0);
  }
}

TEST_F(PlansTest, GathersArePlannedAndCounted) {
  const std::vector<float> expected = alone();
  device(1).facts.strided = false;
  Plan plan = plan_of({});
  stage(plan, Stage::kAttention).parts = {{"a"}};
  Placement down = stage(plan, Stage::kG2);
  down.op = "down";
  down.cut = Cut::kWeightCentric;
  down.parts = {{"a", 0.5}, {"b", 0.5}};
  plan.buckets[0].placements.push_back(down);
  const Outcome outcome = run(plan);
  EXPECT_EQ(outcome.logits, expected);
  // a joins the halves of each layer's residual: read and written once, in floats. The last one is
  // read by rows whose logits are wanted, all of them.
  const int64_t hidden = model_.hyper_parameters().hidden;
  const int64_t bytes = graph_.n_layers * kRows * 2 * hidden * 4;
  EXPECT_EQ(outcome.gather_bytes, bytes);
  int64_t traced = 0;
  for (const TraceEvent& event : outcome.events) traced += event.copy_bytes;
  EXPECT_EQ(traced, bytes);
}

TEST_F(PlansTest, PlannedPausesAreInTheTrace) {
  Plan plan = plan_of({32});
  stage(plan, Stage::kAttention).delay_us = 300;
  const Outcome outcome = run(plan);
  int paused = 0;
  for (const TraceEvent& event : outcome.events) {
    if (event.stage != "A") {
      EXPECT_EQ(event.delay, Duration::zero());
      continue;
    }
    ++paused;
    EXPECT_GE(event.delay, std::chrono::microseconds(300));
  }
  EXPECT_EQ(paused, 4);
}

TEST_F(PlansTest, ATaskIsPredictedToTakeAsLongAsWithTheSameRowsBefore) {
  const Outcome outcome = run(plan_of({}), {20, 20, 9, 20});
  std::vector<int> predicted(4, 0);
  std::vector<int> tasks(4, 0);
  for (size_t i = 0; i < outcome.events.size(); ++i) {
    const TraceEvent& event = outcome.events[i];
    ++tasks[static_cast<size_t>(event.pass)];
    if (event.predicted_us > 0) ++predicted[static_cast<size_t>(event.pass)];
    if (event.pass != 1) continue;
    const TraceEvent& before = outcome.events[i - static_cast<size_t>(tasks[0])];
    EXPECT_EQ(event.name, before.name);
    EXPECT_EQ(event.predicted_us, to_us(before.end - before.start));
  }
  EXPECT_EQ(predicted, (std::vector<int>{0, tasks[1], 0, 0}));
}

}  // namespace
}  // namespace troika::runtime
