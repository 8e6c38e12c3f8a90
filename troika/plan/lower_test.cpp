#include "troika/plan/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace troika::plan {
namespace {

using graph::RowCount;
using graph::Stage;
using graph::TensorId;

constexpr const char* kModels[] = {
    "bf16-wide-heads.gguf", "f16-both-ropes.gguf",    "f16-untied.gguf",
    "f32-odd.gguf",         "mixed-types.gguf",       "q4_0-linear-rope.gguf",
    "q4_0-small.gguf",      "q4_1-like-default.gguf", "q4_1-narrow-mlp.gguf",
    "q8_0-one-head.gguf",   "q8_0-partial-rope.gguf",
};

model::Model load(const std::string& name) {
  return *model::Model::load(std::string(TROIKA_SOURCE_DIR) + "/tests/models/" + name);
}

bool same_place(const graph::Op& a, const graph::Op& b) {
  return a.stage == b.stage && a.layer == b.layer;
}

// Operators [first, last] during which a tensor's memory must be its own: from the beginning of the
// stage that writes it to the end of the last stage that reads it.
std::pair<size_t, size_t> alive(const graph::Graph& graph, TensorId id) {
  auto first = static_cast<size_t>(graph.tensor(id).producer);
  size_t last = first;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto& inputs = graph.ops[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) last = std::max(last, i);
  }
  if (id == graph.logits) last = graph.ops.size() - 1;
  while (first > 0 && same_place(graph.ops[first - 1], graph.ops[first])) --first;
  while (last + 1 < graph.ops.size() && same_place(graph.ops[last], graph.ops[last + 1])) ++last;
  return {first, last};
}

int64_t bytes_of(const graph::Graph& graph, const MemoryPlan& plan, TensorId id, int64_t rows,
                 int64_t logit_rows) {
  const int64_t n = graph.tensor(id).rows == RowCount::kTokens ? rows : logit_rows;
  return graph.tensor(id).width == 0 ? 0 : n * plan.slots[static_cast<size_t>(id)].row_stride;
}

bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

TEST(PlanMemory, NoTwoTensorsAliveAtOnceOverlap) {
  for (const char* name : kModels) {
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    for (const auto& [rows, logit_rows] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {3, 1}, {7, 7}, {512, 1}, {33, 5}, {1, 1000}}) {
      SCOPED_TRACE(fmt::format("{}, {} rows, {} of logits", name, rows, logit_rows));
      const MemoryPlan plan = plan_memory(graph, rows, logit_rows);
      ASSERT_EQ(plan.slots.size(), graph.tensors.size());
      for (TensorId a = 0; a < static_cast<TensorId>(graph.tensors.size()); ++a) {
        const Slot& slot = plan.slots[static_cast<size_t>(a)];
        const int64_t a_bytes = bytes_of(graph, plan, a, rows, logit_rows);
        ASSERT_EQ(slot.offset % 64, 0);
        ASSERT_EQ(slot.row_stride % 64, 0);
        ASSERT_GE(slot.row_stride, graph.tensor(a).width * int64_t{sizeof(float)});
        ASSERT_GE(slot.offset, 0);
        ASSERT_LE(slot.offset + a_bytes, plan.bytes);
        const auto a_life = alive(graph, a);
        for (TensorId b = 0; b < a; ++b) {
          const auto b_life = alive(graph, b);
          if (a_life.first > b_life.second || b_life.first > a_life.second) continue;
          ASSERT_FALSE(overlap(slot.offset, a_bytes, plan.slots[static_cast<size_t>(b)].offset,
                               bytes_of(graph, plan, b, rows, logit_rows)))
              << graph.tensor(a).name << " and " << graph.tensor(b).name;
        }
      }
    }
  }
}

TEST(PlanMemory, LayersUseTheSameSlots) {
  const model::Model model = load("q4_1-narrow-mlp.gguf");
  const graph::Graph graph = *graph::build(model);
  ASSERT_GE(graph.n_layers, 2);
  // A graph of one layer: the same without the second one's operators would need as much.
  const MemoryPlan plan = plan_memory(graph, 64, 1);
  int64_t all = 0;
  for (TensorId id = 0; id < static_cast<TensorId>(graph.tensors.size()); ++id) {
    all += bytes_of(graph, plan, id, 64, 1);
  }
  EXPECT_LT(plan.bytes, all / 2);
  std::map<std::string, std::set<int64_t>> offsets;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const std::string& name = graph.tensors[i].name;
    if (name.rfind("blk.", 0) != 0 || graph.tensors[i].width == 0) continue;
    const std::string part = name.substr(name.find('.', 4) + 1);
    if (part == "q" || part == "k" || part == "v" || part == "gate" || part == "attention") {
      offsets[part].insert(plan.slots[i].offset);
    }
  }
  ASSERT_EQ(offsets.size(), 5u);
  for (const auto& [part, places] : offsets) EXPECT_LE(places.size(), 2u) << part;
}

// Layers alternate between two devices, attention on the other one than the rest.
Plan mixed_plan(const graph::Graph& graph) {
  Plan plan = single_device_plan(graph, "a", 64, "f32");
  plan.devices = {"a", "b"};
  auto& placements = plan.buckets[0].placements;
  placements.resize(2);
  for (int32_t layer = 0; layer < graph.n_layers; ++layer) {
    const std::string own = layer % 2 == 0 ? "b" : "a";
    placements.push_back({Stage::kG1, layer, layer, Cut::kNone, own});
    placements.push_back({Stage::kAttention, layer, layer, Cut::kNone, own == "a" ? "b" : "a"});
    placements.push_back({Stage::kG2, layer, layer, Cut::kNone, own});
  }
  return plan;
}

TEST(Lower, CoversEachOperatorOnceInOrder) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    for (const Plan& plan : {single_device_plan(graph, "cpu", 64, "f32"), mixed_plan(graph)}) {
      ASSERT_TRUE(check(plan, graph).has_value());
      const auto list = lower(plan, plan.buckets[0], graph, 1);
      ASSERT_TRUE(list.has_value());
      EXPECT_EQ(list->tasks.size(), static_cast<size_t>(3 * graph.n_layers + 2));
      graph::OpId next = 0;
      for (const Task& task : list->tasks) {
        EXPECT_EQ(task.program.max_rows, 64);
        for (const graph::OpId id : task.program.ops) {
          EXPECT_EQ(id, next++);
          EXPECT_EQ(graph.op(id).stage, task.stage);
          EXPECT_EQ(graph.op(id).layer, task.layer);
          const auto& tensors = task.program.tensors;
          const auto listed = [&](TensorId t) {
            return std::count(tensors.begin(), tensors.end(), t) == 1;
          };
          EXPECT_TRUE(listed(graph.op(id).output));
          for (const TensorId input : graph.op(id).inputs) EXPECT_TRUE(listed(input));
        }
      }
      EXPECT_EQ(next, static_cast<graph::OpId>(graph.ops.size()));
    }
  }
}

TEST(Lower, CountsTheWorkOfEveryOperator) {
  const model::Model model = load("f16-untied.gguf");
  const graph::Graph graph = *graph::build(model);
  const Plan plan = single_device_plan(graph, "cpu", 64, "f32");
  const auto list = lower(plan, plan.buckets[0], graph, 1);
  ASSERT_TRUE(list.has_value());
  int64_t macs = 0;
  int64_t macs_per_key = 0;
  int64_t bytes = 0;
  for (const Task& task : list->tasks) {
    macs += task.macs_per_row;
    macs_per_key += task.macs_per_key;
    bytes += task.weight_bytes;
  }
  int64_t expected_macs = 0;
  int64_t expected_bytes = 0;
  for (const model::Weight& weight : model.weights()) {
    // Looked up or folded into the angles, not multiplied.
    if (weight.name == "token_embd.weight" || weight.name == "rope_freqs.weight") continue;
    expected_bytes += weight.bytes();
    if (weight.rows > 1) expected_macs += weight.rows * weight.cols;
  }
  const model::HyperParameters& hyper = model.hyper_parameters();
  EXPECT_EQ(macs, expected_macs);
  EXPECT_EQ(bytes, expected_bytes);
  EXPECT_EQ(macs_per_key, hyper.n_layers * 2 * hyper.q_width());
}

TEST(Lower, WaitsOnlyForWritersOnOtherDevices) {
  const model::Model model = load("q4_1-narrow-mlp.gguf");
  const graph::Graph graph = *graph::build(model);
  const Plan one = single_device_plan(graph, "cpu", 64, "f32");
  const auto alone = lower(one, one.buckets[0], graph, 1);
  ASSERT_TRUE(alone.has_value());
  for (const Task& task : alone->tasks) EXPECT_TRUE(task.waits.empty()) << task.name;
  const Plan two = mixed_plan(graph);
  const auto list = lower(two, two.buckets[0], graph, 1);
  ASSERT_TRUE(list.has_value());
  const std::vector<int32_t> devices = {0, 1, 0, 1, 0, 1, 0, 0};
  // input; layer 0: G1 reads input, A reads G1, G2 reads A and input's residual; layer 1: G1 reads
  // G2 and has the rope table on its own device, A reads G1, G2 reads A and the residual of layer
  // 0's G2; head reads G2 on its own device.
  const std::vector<std::vector<int32_t>> waits = {{}, {0}, {1}, {0, 2}, {3}, {4}, {3, 5}, {}};
  ASSERT_EQ(list->tasks.size(), devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    SCOPED_TRACE(list->tasks[i].name);
    EXPECT_EQ(list->tasks[i].device, devices[i]);
    std::vector<int32_t> got = list->tasks[i].waits;
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, waits[i]);
  }
}

// Slots are reused: two tasks that touch the same bytes, one of them writing, must be ordered by
// waits and queues, whichever devices run them.
TEST(Lower, TasksThatShareMemoryAreOrdered) {
  for (const char* name : {"q4_1-narrow-mlp.gguf", "f16-untied.gguf", "f32-odd.gguf"}) {
    SCOPED_TRACE(name);
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    const Plan plan = mixed_plan(graph);
    const auto list = lower(plan, plan.buckets[0], graph, 5);
    ASSERT_TRUE(list.has_value());
    const size_t n = list->tasks.size();
    std::vector<std::set<size_t>> before(n);
    for (size_t i = 0; i < n; ++i) {
      std::vector<size_t> direct(list->tasks[i].waits.begin(), list->tasks[i].waits.end());
      for (size_t j = 0; j < i; ++j) {
        if (list->tasks[j].device == list->tasks[i].device) direct.push_back(j);
      }
      for (const size_t j : direct) {
        ASSERT_LT(j, i);
        before[i].insert(j);
        before[i].insert(before[j].begin(), before[j].end());
      }
    }
    const auto conflict = [&](const Task& a, const Task& b) {
      for (const graph::OpId id : a.program.ops) {
        const TensorId out = graph.op(id).output;
        for (const TensorId other : b.program.tensors) {
          if (overlap(list->memory.slots[static_cast<size_t>(out)].offset,
                      bytes_of(graph, list->memory, out, 64, 5),
                      list->memory.slots[static_cast<size_t>(other)].offset,
                      bytes_of(graph, list->memory, other, 64, 5))) {
            return true;
          }
        }
      }
      return false;
    };
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (before[i].contains(j)) continue;
        EXPECT_FALSE(conflict(list->tasks[i], list->tasks[j]) ||
                     conflict(list->tasks[j], list->tasks[i]))
            << list->tasks[j].name << " and " << list->tasks[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace troika::plan
