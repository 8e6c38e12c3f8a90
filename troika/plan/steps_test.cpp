#include "troika/plan/steps.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "tests/repository.h"
#include "troika/plan/lower.h"

namespace troika::plan {
namespace {

using graph::Stage;

constexpr int64_t kRows = 64;

// "G1.0.2" is G1 of layer 0 of chunk 2, "G1.0.2-3" of joined chunks, "G1.0.2/1" its second turn.
std::string name(const Step& step) {
  std::string text = fmt::format("{}.{}.{}", to_string(step.stage), step.layer, step.chunk);
  if (step.chunks > 1) text += fmt::format("-{}", step.chunk + step.chunks - 1);
  if (step.turn >= 0) text += fmt::format("/{}", step.turn);
  return text;
}

class StepsTest : public ::testing::Test {
 protected:
  // Two layers.
  StepsTest()
      : model_(*model::Model::load(repository_path("tests/models/q4_1-narrow-mlp.gguf"))),
        graph_(*graph::build(model_)) {}

  // Products on a, attention on b; four chunks of 16 rows.
  Plan two_devices() const {
    Plan plan = single_device_plan(graph_, "a", kRows, "f32");
    plan.devices = {"a", "b"};
    plan.buckets[0].chunks = {16};
    stage(plan, Stage::kAttention).parts = {{"b"}};
    return plan;
  }
  Plan with_chunks(std::vector<int64_t> chunks) const {
    Plan plan = two_devices();
    plan.buckets[0].chunks = std::move(chunks);
    return plan;
  }
  static Placement& stage(Plan& plan, Stage wanted) {
    auto& placements = plan.buckets[0].placements;
    return *std::find_if(placements.begin(), placements.end(),
                         [&](const Placement& p) { return p.stage == wanted && p.op.empty(); });
  }

  std::string steps_of(const Plan& plan, int64_t rows = kRows) const {
    const RowsBucket& bucket = plan.buckets[0];
    const auto steps =
        order_steps(plan, bucket, 2, chunk_count(bucket, rows), {}, turn_counts(graph_));
    if (!steps) return steps.error().message;
    std::string all;
    for (const Step& step : *steps) {
      if (step.stage != Stage::kInput) all += (all.empty() ? "" : " ") + name(step);
    }
    return all;
  }

  std::string refused(const std::function<void(Plan&)>& spoil) const {
    Plan plan = two_devices();
    spoil(plan);
    const Status status = check(plan, graph_);
    if (status) return "accepted";
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidData);
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
    return status.error().message;
  }

  // "G1 layer 0" with the block's chunk, in the order in which a device gets them.
  std::vector<std::string> queue_of(const Plan& plan, int32_t device, int64_t rows = kRows) const {
    std::vector<std::string> queue;
    const std::vector<device::DeviceInfo> infos(plan.devices.size());
    const auto list = lower(plan, plan.buckets[0], graph_, rows, 1, infos);
    EXPECT_TRUE(list.has_value()) << list.error().message;
    if (!list) return queue;
    for (const Task& task : list->tasks) {
      if (task.device != device || task.layer < 0) continue;
      const Block& block = list->cut->blocks[static_cast<size_t>(std::max(task.block, 0))];
      queue.push_back(name({task.stage, task.layer, block.chunk, block.chunks}));
    }
    return queue;
  }

  model::Model model_;
  graph::Graph graph_;
};

OrderEntry entry(std::optional<Stage> stage, int32_t layer, int32_t chunk) {
  return {stage, layer, layer, chunk, chunk};
}

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "says: " << (message)

TEST_F(StepsTest, ByRuleAllChunksInFlightGoThroughAStageTogether) {
  Plan plan = with_chunks({32});
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 G1.0.1 A.0.0 A.0.1 G2.0.0 G2.0.1 G1.1.0 G1.1.1 A.1.0 A.1.1 G2.1.0 G2.1.1");
  EXPECT_EQ(steps_of(plan, 20), "G1.0.0 A.0.0 G2.0.0 G1.1.0 A.1.0 G2.1.0");
  plan.buckets[0].in_flight = 1;
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 A.0.0 G2.0.0 G1.1.0 A.1.0 G2.1.0 G1.0.1 A.0.1 G2.0.1 G1.1.1 A.1.1 G2.1.1");
  plan = with_chunks({30, 10, 20});
  plan.buckets[0].in_flight = 2;
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 G1.0.1 A.0.0 A.0.1 G2.0.0 G2.0.1 G1.1.0 G1.1.1 A.1.0 A.1.1 G2.1.0 G2.1.1 "
            "G1.0.2 G1.0.3 A.0.2 A.0.3 G2.0.2 G2.0.3 G1.1.2 G1.1.3 A.1.2 A.1.3 G2.1.2 G2.1.3");
}

TEST_F(StepsTest, InAWavefrontEachChunkIsOneStageBehind) {
  Plan plan = with_chunks({32});
  plan.buckets[0].order_rule = OrderRule::kWavefront;
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 A.0.0 G1.0.1 G2.0.0 A.0.1 G1.1.0 G2.0.1 A.1.0 G1.1.1 G2.1.0 A.1.1 G2.1.1");
  // The third chunk takes the first one's place when that is done.
  plan = with_chunks({24, 24, 16});
  plan.buckets[0].order_rule = OrderRule::kWavefront;
  plan.buckets[0].in_flight = 2;
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 A.0.0 G1.0.1 G2.0.0 A.0.1 G1.1.0 G2.0.1 A.1.0 G1.1.1 G2.1.0 A.1.1 G2.1.1 "
            "G1.0.2 A.0.2 G2.0.2 G1.1.2 A.1.2 G2.1.2");
}

TEST_F(StepsTest, ByProductsEachChunkIsSoManyTurnsBehind) {
  Plan plan = with_chunks({32});
  plan.buckets[0].order_rule = OrderRule::kProducts;
  // G1: norm; q, k, v; RoPE and KV write. G2: o; norm; gate, up; SiLU; down; sum.
  EXPECT_EQ(turn_counts(graph_), (std::vector<int32_t>{3, 1, 6, 3, 1, 6}));
  std::string all = steps_of(plan);
  EXPECT_EQ(all.substr(0, 59), "G1.0.0/0 G1.0.1/0 G1.0.0/1 G1.0.1/1 G1.0.0/2 G1.0.1/2 A.0.0");
  plan.buckets[0].lag = 2;
  all = steps_of(plan);
  EXPECT_EQ(all.substr(0, 79),
            "G1.0.0/0 G1.0.0/1 G1.0.0/2 G1.0.1/0 A.0.0/0 G1.0.1/1 G2.0.0/0 G1.0.1/2 G2.0.0/1");
  // One after the other.
  plan.buckets[0].in_flight = 1;
  all = steps_of(plan);
  EXPECT_LT(all.find("G2.1.0/5"), all.find("G1.0.1/0"));
  // Joined ones take a turn together.
  plan = two_devices();
  plan.buckets[0].order_rule = OrderRule::kProducts;
  plan.buckets[0].lag = 9;
  stage(plan, Stage::kG2).join_chunks = 2;
  all = steps_of(plan);
  EXPECT_SAYS(all, "A.0.0/0 A.0.1/0 G2.0.0-1/0 G2.0.0-1/1");
  EXPECT_SAYS(all, "G2.0.0-1/5 G1.0.2/0 G1.0.3/0 G1.1.0/0");
  EXPECT_TRUE(check(plan, graph_));
}

TEST_F(StepsTest, OnlyTheOrderByProductsHasALag) {
  for (const int32_t lag : {-1, kMaxLag + 1}) {
    EXPECT_SAYS(refused([&](Plan& p) {
                  p.buckets[0].order_rule = OrderRule::kProducts;
                  p.buckets[0].lag = lag;
                }),
                fmt::format("lag is {}, not 0 to 4096 turns", lag));
  }
  EXPECT_SAYS(refused([](Plan& p) { p.buckets[0].lag = 1; }), "lag is 1");
}

TEST_F(StepsTest, JoinedChunksAreOneStep) {
  Plan plan = two_devices();
  stage(plan, Stage::kG2).join_chunks = 3;  // 0 to 2; the fourth is alone
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 G1.0.1 G1.0.2 G1.0.3 A.0.0 A.0.1 A.0.2 A.0.3 G2.0.0-2 G2.0.3 "
            "G1.1.0 G1.1.1 G1.1.2 G1.1.3 A.1.0 A.1.1 A.1.2 A.1.3 G2.1.0-2 G2.1.3");
  // Under way are whole groups.
  stage(plan, Stage::kG2).join_chunks = 2;
  plan.buckets[0].in_flight = 1;
  EXPECT_EQ(steps_of(plan),
            "G1.0.0 G1.0.1 A.0.0 A.0.1 G2.0.0-1 G1.1.0 G1.1.1 A.1.0 A.1.1 G2.1.0-1 "
            "G1.0.2 G1.0.3 A.0.2 A.0.3 G2.0.2-3 G1.1.2 G1.1.3 A.1.2 A.1.3 G2.1.2-3");
  EXPECT_EQ(steps_of(plan, 20),
            "G1.0.0 G1.0.1 A.0.0 A.0.1 G2.0.0-1 G1.1.0 G1.1.1 A.1.0 A.1.1 G2.1.0-1");
}

TEST_F(StepsTest, EveryDevicesQueueHasTheListsOrder) {
  Plan plan = with_chunks({32});
  // Chunk 1 leads in the first layer, chunk 0 in the second one. What comes on one device after
  // what it needs on another may stand before it.
  plan.buckets[0].order = {entry(Stage::kAttention, 0, 0), entry(Stage::kG1, 0, 1),
                           entry(Stage::kG1, 0, 0),        entry(Stage::kAttention, 0, 1),
                           entry(Stage::kG2, 0, 1),        entry(Stage::kG2, 0, 0),
                           entry(Stage::kG1, 1, 0),        entry(std::nullopt, 1, 1),
                           entry(Stage::kAttention, 1, 0), entry(Stage::kG2, 1, 0)};
  // A of chunk 1 needs G1 of chunk 0, too.
  ASSERT_TRUE(check(plan, graph_).has_value()) << check(plan, graph_).error().message;
  EXPECT_EQ(queue_of(plan, 0), (std::vector<std::string>{"G1.0.1", "G1.0.0", "G2.0.1", "G2.0.0",
                                                         "G1.1.0", "G1.1.1", "G2.1.1", "G2.1.0"}));
  EXPECT_EQ(queue_of(plan, 1), (std::vector<std::string>{"A.0.0", "A.0.1", "A.1.1", "A.1.0"}));
  // A shorter pass has fewer chunks.
  EXPECT_EQ(queue_of(plan, 0, 30),
            (std::vector<std::string>{"G1.0.0", "G2.0.0", "G1.1.0", "G2.1.0"}));
}

TEST_F(StepsTest, OnlyEarlierChunksKeysAreWaitedFor) {
  Plan plan = with_chunks({32});
  const std::vector<device::DeviceInfo> infos(2);
  const auto list = lower(plan, plan.buckets[0], graph_, kRows, 1, infos);
  ASSERT_TRUE(list.has_value());
  // input of both chunks, G1 of both, then A of each waits for its own chunk's G1 only.
  for (const Task& task : list->tasks) {
    if (task.stage != Stage::kAttention || task.layer != 0) continue;
    ASSERT_EQ(task.waits.size(), 1u);
    const Task& awaited = list->tasks[static_cast<size_t>(task.waits[0])];
    EXPECT_EQ(awaited.stage, Stage::kG1);
    EXPECT_EQ(awaited.block, task.block);
  }
}

TEST_F(StepsTest, OrdersThatCannotBeKeptAreRefused) {
  const auto with = [&](std::vector<OrderEntry> order) {
    return refused([&](Plan& p) {
      p.buckets[0].chunks = {32};
      p.buckets[0].order = std::move(order);
    });
  };
  const OrderEntry all = {std::nullopt, 0, 1, 0, 1};
  EXPECT_SAYS(with({all}), "accepted");
  EXPECT_SAYS(with({{std::nullopt, 0, 1, 0, 0}, {std::nullopt, 0, 1, 1, 1}}), "accepted");
  std::string m = with({{std::nullopt, 0, 0, 0, 1}, {Stage::kG1, 1, 1, 0, 1}});
  EXPECT_SAYS(m, "bucket of 64 rows, order: A layer 1 chunk 0 is missing");
  m = with({all, entry(Stage::kG2, 1, 1)});
  EXPECT_SAYS(m, "order[1]: G2 layer 1 chunk 1 stands twice");
  m = with({entry(Stage::kInput, 0, 0), all});
  EXPECT_SAYS(m, "order[0]: stage input has its fixed place");
  m = with({entry(Stage::kHead, 0, 0), all});
  EXPECT_SAYS(m, "order[0]: stage head has its fixed place");
  m = with({{std::nullopt, 0, 2, 0, 1}});
  EXPECT_SAYS(m, "order[0]: layers 0 to 2 are not in 0 to 1");
  m = with({{std::nullopt, -1, 1, 0, 1}});
  EXPECT_SAYS(m, "layers -1 to 1");
  m = with({{std::nullopt, 1, 0, 0, 1}});
  EXPECT_SAYS(m, "layers 1 to 0");
  m = with({{std::nullopt, 0, 1, 0, 2}});
  EXPECT_SAYS(m, "order[0]: chunks 0 to 2 are not in 0 to 1");
  m = with({{std::nullopt, 0, 1, 1, 0}});
  EXPECT_SAYS(m, "chunks 1 to 0");
  m = with({{std::nullopt, 0, 1, 0, INT32_MAX}});
  EXPECT_SAYS(m, "chunks 0 to 2147483647");
  m = with(std::vector<OrderEntry>(8193, all));
  EXPECT_SAYS(m, "8193 entries of orders");

  // On one device: what is needed comes later.
  m = with({entry(Stage::kG2, 0, 0),
            entry(Stage::kG1, 0, 0),
            entry(Stage::kG1, 0, 1),
            entry(Stage::kAttention, 0, 0),
            entry(Stage::kAttention, 0, 1),
            entry(Stage::kG2, 0, 1),
            {std::nullopt, 1, 1, 0, 1}});
  EXPECT_SAYS(m, "order[0]: G2 layer 0 chunk 0 stands in a device's queue before what it needs");
  // Of two devices: b would begin with A of chunk 1, which needs G1 of chunk 1, which a has behind
  // G2 of chunk 0, which needs A of chunk 0, which b has behind A of chunk 1.
  m = with({entry(Stage::kG1, 0, 0),
            entry(Stage::kAttention, 0, 1),
            entry(Stage::kAttention, 0, 0),
            entry(Stage::kG2, 0, 0),
            entry(Stage::kG1, 0, 1),
            entry(Stage::kG2, 0, 1),
            {std::nullopt, 1, 1, 0, 1}});
  EXPECT_SAYS(m, "order[1]: A layer 0 chunk 1 stands");
  EXPECT_SAYS(m, "wait for each other");
  // The edge between chunks: A of chunk 1 needs the keys of chunk 0.
  m = refused([&](Plan& p) {
    p.buckets[0].chunks = {32};
    stage(p, Stage::kAttention).parts = {{"a"}};
    p.buckets[0].order = {{std::nullopt, 0, 1, 1, 1}, {std::nullopt, 0, 1, 0, 0}};
  });
  EXPECT_SAYS(m, "order[0]: A layer 0 chunk 1 stands");
}

TEST_F(StepsTest, JoinsThatCannotBeAreRefused) {
  const auto with = [&](Stage where, const std::function<void(Placement&)>& spoil) {
    return refused([&](Plan& p) { spoil(stage(p, where)); });
  };
  const auto join = [](Placement& p) { p.join_chunks = 2; };
  for (const Stage where : {Stage::kInput, Stage::kG1, Stage::kAttention, Stage::kG2}) {
    EXPECT_SAYS(with(where, join), "accepted");
  }
  EXPECT_SAYS(with(Stage::kHead, join), "head: this stage has no chunks that could join");
  EXPECT_SAYS(with(Stage::kG2, [](Placement& p) { p.join_chunks = 0; }),
              "G2 layer 0: join_chunks is 0, not 1 to 256");
  EXPECT_SAYS(with(Stage::kG2, [](Placement& p) { p.join_chunks = 1025; }), "join_chunks is 1025");
  std::string m = refused([&](Plan& p) {
    p.buckets[0].chunks.clear();
    join(stage(p, Stage::kG2));
  });
  EXPECT_SAYS(m, "G2 layer 0: there are no chunks to join");
  m = refused([&](Plan& p) {
    join(stage(p, Stage::kG2));
    stage(p, Stage::kG1).join_chunks = 3;
  });
  EXPECT_SAYS(m, "in another placement");
  const auto beside = [&](const std::function<void(Placement&)>& change) {
    return refused([&](Plan& p) {
      Placement extra = stage(p, Stage::kG2);
      change(extra);
      join(stage(p, Stage::kG2));
      p.buckets[0].placements.push_back(extra);
    });
  };
  EXPECT_SAYS(beside([](Placement& p) { p.op = "down"; }), "accepted");
  m = beside([](Placement& p) {
    p.op = "down";
    p.join_chunks = 2;
  });
  EXPECT_SAYS(m, "G2 down layer 0: only a whole stage can join chunks");
  m = beside([](Placement& p) { p.chunk = 1; });
  EXPECT_SAYS(m, "G2 layer 0 chunk 1: chunks join in this stage");
  // In a list they stand together.
  m = refused([&](Plan& p) {
    join(stage(p, Stage::kG2));
    p.buckets[0].order = {{std::nullopt, 0, 1, 0, 0}, {std::nullopt, 0, 1, 1, 3}};
  });
  EXPECT_SAYS(m, "order[0]: G2 layer 0 chunk 0 to 1 join: their chunks have to follow each other");
  m = refused([&](Plan& p) {
    join(stage(p, Stage::kG2));
    p.buckets[0].order = {{std::nullopt, 0, 1, 1, 3}, {std::nullopt, 0, 1, 0, 0}};
  });
  EXPECT_SAYS(m, "join: their chunks have to follow each other");
}

TEST_F(StepsTest, OneTaskReadsTheWeightsForAllJoinedChunks) {
  Plan plan = two_devices();
  stage(plan, Stage::kG2).join_chunks = 2;
  EXPECT_EQ(
      queue_of(plan, 0),
      (std::vector<std::string>{"G1.0.0", "G1.0.1", "G1.0.2", "G1.0.3", "G2.0.0-1", "G2.0.2-3",
                                "G1.1.0", "G1.1.1", "G1.1.2", "G1.1.3", "G2.1.0-1", "G2.1.2-3"}));
  EXPECT_EQ(queue_of(plan, 1), (std::vector<std::string>{"A.0.0", "A.0.1", "A.0.2", "A.0.3",
                                                         "A.1.0", "A.1.1", "A.1.2", "A.1.3"}));
  const std::vector<device::DeviceInfo> infos(2);
  const auto joined = lower(plan, plan.buckets[0], graph_, kRows, 1, infos);
  stage(plan, Stage::kG2).join_chunks = 1;
  const auto apart = lower(plan, plan.buckets[0], graph_, kRows, 1, infos);
  ASSERT_TRUE(joined && apart);
  const auto g2_bytes = [](const TaskList& list) {
    return std::accumulate(list.tasks.begin(), list.tasks.end(), int64_t{0},
                           [](int64_t sum, const Task& task) {
                             return sum + (task.stage == Stage::kG2 ? task.weight_bytes : 0);
                           });
  };
  EXPECT_EQ(2 * g2_bytes(*joined), g2_bytes(*apart));
  const auto task = std::find_if(joined->tasks.begin(), joined->tasks.end(),
                                 [](const Task& t) { return t.stage == Stage::kG2; });
  EXPECT_EQ(task->name, "G2 layer 0 chunks 0-1");
  EXPECT_EQ(task->program.max_rows, 32);
  // Nothing is copied to bring rows together.
  for (const Task& any : joined->tasks) EXPECT_EQ(any.join_bytes_per_row, 0) << any.name;
}

// A static device pads; in the middle of joined rows the padding would overwrite the next chunk's.
TEST_F(StepsTest, ChunksThatWouldBePaddedStayApart) {
  Plan plan = two_devices();
  stage(plan, Stage::kG2).join_chunks = 2;
  std::vector<device::DeviceInfo> infos(2);
  infos[1].standard_rows = {1, 16, 32, 64};  // attention
  const auto joins = [&](const std::vector<int64_t>& chunks) {
    plan.buckets[0].chunks = chunks;
    const auto list = lower(plan, plan.buckets[0], graph_, kRows, 1, infos);
    EXPECT_TRUE(list.has_value());
    return std::any_of(list->tasks.begin(), list->tasks.end(), [](const Task& task) {
      return task.name.find("chunks 0-1") != std::string::npos;
    });
  };
  EXPECT_TRUE(joins({16}));
  EXPECT_TRUE(joins({32, 11, 21}));  // the last one of a group may be padded
  EXPECT_FALSE(joins({11, 32, 21}));
}

TEST_F(StepsTest, TurnsAreProductsThenOthers) {
  std::vector<graph::OpId> stage;
  for (size_t id = 0; id < graph_.ops.size(); ++id) {
    const graph::Op& op = graph_.ops[id];
    if (op.stage == Stage::kG2 && op.layer == 1) stage.push_back(static_cast<graph::OpId>(id));
  }
  const auto parts = turns(graph_, stage);
  // o; residual, norm; gate, up; their product; down; residual.
  ASSERT_EQ(parts.size(), 6u);
  std::vector<graph::OpId> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const graph::OpId id : parts[i]) {
      EXPECT_EQ(graph_.op(id).kind == graph::OpKind::kMatMul, i % 2 == 0);
      all.push_back(id);
    }
  }
  EXPECT_EQ(all, stage);
  EXPECT_TRUE(turns(graph_, {}).empty());
}

// Who has the second block computes its products before it waits for those of the first.
TEST_F(StepsTest, BlocksOfAChunkTakeTurns) {
  Plan plan = two_devices();
  RowsBucket& bucket = plan.buckets[0];
  bucket.chunks.clear();
  stage(plan, Stage::kAttention).parts = {{"a"}};
  Placement gate;
  gate.stage = Stage::kG2;
  gate.op = "gate";
  gate.first_layer = 0;
  gate.last_layer = 1;
  gate.cut = Cut::kActivationCentric;
  gate.parts = {{plan.devices[1], 0.5}, {plan.devices[0], 0.5}};
  bucket.placements.push_back(gate);
  ASSERT_TRUE(check(plan, graph_).has_value());
  std::vector<device::DeviceInfo> infos(2);
  for (size_t i = 0; i < 2; ++i) infos[i].name = plan.devices[i];
  const auto list = lower(plan, bucket, graph_, kRows, 1, infos);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  // On the first device: the product of the second block, before what waits for the other device.
  bool product_before_wait = false;
  size_t waiting = 0;
  for (const Task& task : list->tasks) {
    if (task.device != 0 || task.stage != Stage::kG2 || task.layer != 0) continue;
    if (!task.waits.empty()) {
      ++waiting;
      continue;
    }
    for (const graph::OpId id : task.program.ops) {
      const graph::Op& op = list->cut->graph.op(id);
      const bool product = op.kind == graph::OpKind::kMatMul && task.block == 1;
      product_before_wait = product_before_wait || (product && waiting == 0);
    }
  }
  EXPECT_GE(waiting, 1u);
  EXPECT_TRUE(product_before_wait);
}

TEST_F(StepsTest, ManyStepsAreOrderedQuickly) {
  Plan plan = two_devices();
  RowsBucket& bucket = plan.buckets[0];
  bucket.max_rows = kMaxChunks;
  bucket.chunks = {1};
  bucket.order = {{std::nullopt, 0, 1, 0, kMaxChunks - 1}};
  const Status status = check(plan, graph_);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  bucket.order.assign(8192, bucket.order[0]);
  EXPECT_SAYS(refused([&](Plan& p) { p.buckets[0] = bucket; }), "order[1]: G1 layer 0 chunk 0");
}

}  // namespace
}  // namespace troika::plan
