#include "troika/plan/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/repository.h"
#include "troika/plan/default_plan.h"
#include "troika/plan/testing/random_plan.h"

namespace troika::plan {
namespace {

using graph::OpKind;
using graph::RowCount;
using graph::Stage;
using graph::TensorId;

constexpr const char* kModels[] = {
    "bf16-wide-heads.gguf",   "f16-both-ropes.gguf",    "f16-untied.gguf",
    "f32-odd.gguf",           "mixed-types.gguf",       "q4_0-linear-rope.gguf",
    "q4_0-small.gguf",        "q4_1-like-default.gguf", "q4_1-narrow-mlp.gguf",
    "q4_k_m-like.gguf",       "q6_k-odd-heads.gguf",    "q8_0-one-head.gguf",
    "q8_0-partial-rope.gguf",
};

model::Model load(const std::string& name) {
  return *model::Model::load(repository_path("tests/models/") + name);
}

// Devices of each kind: any rows and strides; static lengths; no strides.
std::vector<device::DeviceInfo> three_devices() {
  std::vector<device::DeviceInfo> infos(3);
  infos[0].name = "a";
  infos[0].n_tile = 16;
  infos[1].name = "b";
  infos[1].standard_rows = {1, 8, 32, 64};
  infos[1].n_tile = 32;
  infos[1].k_tile = 32;
  infos[2].name = "c";
  infos[2].standard_rows = {1, 16, 128};
  infos[2].strided = false;
  return infos;
}

Placement whole(Stage stage, int32_t layer, const std::string& device) {
  Placement placement;
  placement.stage = stage;
  placement.first_layer = placement.last_layer = layer;
  placement.parts = {{device}};
  return placement;
}

// Layers alternate between two devices, attention on the other one than the rest.
Plan mixed_plan(const graph::Graph& graph) {
  Plan plan = single_device_plan(graph, "a", 64, "f32");
  plan.devices = {"a", "b"};
  auto& placements = plan.buckets[0].placements;
  placements.resize(2);
  for (int32_t layer = 0; layer < graph.n_layers; ++layer) {
    const std::string own = layer % 2 == 0 ? "b" : "a";
    placements.push_back(whole(Stage::kG1, layer, own));
    placements.push_back(whole(Stage::kAttention, layer, own == "a" ? "b" : "a"));
    placements.push_back(whole(Stage::kG2, layer, own));
  }
  return plan;
}

std::vector<device::DeviceInfo> plain(size_t count) {
  return std::vector<device::DeviceInfo>(count);
}

TEST(Lower, OneDeviceGetsTheGraphAsItIs) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    const Plan plan = single_device_plan(graph, "cpu", 64, "f32");
    const auto list = lower(plan, plan.buckets[0], graph, 64, 1, plain(1));
    ASSERT_TRUE(list.has_value());
    EXPECT_TRUE(list->any_rows);
    EXPECT_EQ(list->tasks.size(), static_cast<size_t>(3 * graph.n_layers + 2));
    size_t next = 0;
    for (const Task& task : list->tasks) {
      EXPECT_TRUE(task.waits.empty());
      EXPECT_EQ(task.program.max_rows, task.stage == Stage::kHead ? 1 : 64);
      for (const graph::OpId id : task.program.ops) {
        const graph::Op& op = list->cut->graph.op(id);
        ASSERT_LT(next, graph.ops.size());
        EXPECT_EQ(op.kind, graph.ops[next].kind);
        EXPECT_EQ(op.weight, graph.ops[next].weight);
        EXPECT_EQ(op.stage, task.stage);
        EXPECT_EQ(op.layer, task.layer);
        ++next;
        const auto& tensors = task.program.tensors;
        EXPECT_EQ(std::count(tensors.begin(), tensors.end(), op.output), 1);
      }
    }
    EXPECT_EQ(next, graph.ops.size());
  }
}

// However a graph is cut, its products are done once: outputs, inputs and rows add up.
TEST(Lower, EveryProductIsDoneOnce) {
  std::mt19937 random(7);
  int listed = 0;
  int joined = 0;
  for (const char* name : kModels) {
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    for (int round = 0; round < 30; ++round) {
      const int64_t rows = 1 + static_cast<int64_t>(random() % 90);
      const Plan plan = testing::random_plan(graph, {"a", "b", "c"}, rows, random);
      SCOPED_TRACE(fmt::format("{}, round {}, {} rows\n{}", name, round, rows, to_json(plan)));
      ASSERT_TRUE(check(plan, graph).has_value()) << check(plan, graph).error().message;
      // Where static devices pad, chunks stay apart.
      const auto infos = round % 2 == 0 ? three_devices() : plain(3);
      const auto list = lower(plan, plan.buckets[0], graph, rows, 1, infos);
      ASSERT_TRUE(list.has_value()) << list.error().message;
      listed += plan.buckets[0].order.empty() ? 0 : 1;
      joined += std::any_of(list->tasks.begin(), list->tasks.end(), [](const Task& task) {
        return task.name.find(" chunks ") != std::string::npos;
      });
      std::map<const model::Weight*, int64_t> macs;
      int64_t macs_per_key = 0;
      for (const Task& task : list->tasks) {
        for (const graph::OpId id : task.program.ops) {
          const graph::Op& op = list->cut->graph.op(id);
          const int32_t block = list->cut->assignments[static_cast<size_t>(id)].block;
          const int64_t n =
              block == kWholePass ? 1 : list->cut->blocks[static_cast<size_t>(block)].rows;
          if (list->cut->graph.tensor(op.output).rows == RowCount::kTokens) {
            EXPECT_LE(n, task.program.max_rows) << task.name;
          }
          if (op.kind == OpKind::kMatMul) {
            macs[op.weight] += n * graph::macs_per_row(list->cut->graph, id, 0);
          }
          if (op.kind == OpKind::kAttention) {
            macs_per_key += n * graph::macs_per_row(list->cut->graph, id, 1);
          }
          if (op.kind == OpKind::kConcat) {
            int64_t width = 0;
            for (const TensorId in : op.inputs) width += list->cut->graph.tensor(in).width;
            EXPECT_EQ(width, list->cut->graph.tensor(op.output).width);
          }
        }
      }
      int64_t expected_per_key = 0;
      for (size_t i = 0; i < graph.ops.size(); ++i) {
        const graph::Op& op = graph.ops[i];
        const int64_t n = op.stage == Stage::kHead ? 1 : rows;
        if (op.kind == OpKind::kMatMul) {
          EXPECT_EQ(macs[op.weight], n * op.weight->rows * op.weight->cols) << op.weight->name;
        }
        if (op.kind == OpKind::kAttention) {
          expected_per_key += n * graph::macs_per_row(graph, static_cast<graph::OpId>(i), 1);
        }
      }
      EXPECT_EQ(macs_per_key, expected_per_key);
    }
  }
  EXPECT_GT(listed, 30);
  EXPECT_GT(joined, 10);
}

// Slices are windows of one tensor, whoever wrote them and however they are read.
TEST(Lower, DevicesThatTakeAnyStrideCopyNothing) {
  std::mt19937 random(13);
  for (const char* name : {"q4_1-narrow-mlp.gguf", "f32-odd.gguf", "q8_0-one-head.gguf"}) {
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    for (int round = 0; round < 40; ++round) {
      Plan plan = testing::random_plan(graph, {"a", "b", "c"}, 48, random);
      for (Placement& placement : plan.buckets[0].placements) placement.join_chunks = 1;
      plan.buckets[0].order.clear();
      const auto list = lower(plan, plan.buckets[0], graph, 48, 5, plain(3));
      ASSERT_TRUE(list.has_value()) << list.error().message;
      for (const Task& task : list->tasks) {
        ASSERT_EQ(task.join_bytes_per_row, 0) << task.name << " of\n" << to_json(plan);
      }
    }
  }
}

TEST(Lower, CountsTheWorkOfEveryOperator) {
  const model::Model model = load("f16-untied.gguf");
  const graph::Graph graph = *graph::build(model);
  const Plan plan = single_device_plan(graph, "cpu", 64, "f32");
  const auto list = lower(plan, plan.buckets[0], graph, 64, 1, plain(1));
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
  const Plan two = mixed_plan(graph);
  const auto list = lower(two, two.buckets[0], graph, 64, 1, plain(2));
  ASSERT_TRUE(list.has_value());
  const std::vector<int32_t> devices = {0, 1, 0, 1, 0, 1, 0, 0};
  // input; layer 0: G1 reads input, A reads G1, G2 reads A and the residual of input, which G1
  // waited for; layer 1: G1 (on the first device) reads G2, A reads G1, G2 reads A; the residual of
  // layer 0's G2 is on A's device; head reads G2 on its own device.
  const std::vector<std::vector<int32_t>> waits = {{}, {0}, {1}, {2}, {3}, {4}, {5}, {}};
  ASSERT_EQ(list->tasks.size(), devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    SCOPED_TRACE(list->tasks[i].name);
    EXPECT_EQ(list->tasks[i].device, devices[i]);
    EXPECT_EQ(list->tasks[i].waits, waits[i]);
  }
}

// Two devices with paired cuts wait for each other's sums and for nothing else: each adds them up
// and norms for itself, and no product of its own is done before the other's sum is there to read.
TEST(Lower, PairedDevicesWaitForSumsOnly) {
  const model::Model model = load("q4_1-like-default.gguf");
  const graph::Graph graph = *graph::build(model);
  std::vector<device::DeviceInfo> infos = plain(2);
  infos[0].name = "a";
  infos[1].name = "b";
  DefaultPlanOptions options;
  options.max_rows = 1;
  options.split = *parse_split("paired:1/1", 2);
  const std::vector<DeviceRates> rates(2, {1, 1});
  const Plan plan = default_plan(graph, infos, rates, options);
  const auto list = lower(plan, plan.buckets[0], graph, 1, 1, infos);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  std::vector<int> joins(2, 0);
  for (const Task& task : list->tasks) {
    SCOPED_TRACE(task.name);
    if (task.stage != Stage::kG1 && task.stage != Stage::kG2) continue;
    for (const int32_t other : task.waits) {
      const Task& before = list->tasks[static_cast<size_t>(other)];
      if (before.stage == Stage::kInput) continue;
      const TensorId last = list->cut->graph.op(before.program.ops.back()).output;
      const auto& reads = task.program.tensors;
      EXPECT_NE(std::find(reads.begin(), reads.end(), last), reads.end())
          << "waits for more of " << before.name << " than it reads";
      ++joins[static_cast<size_t>(task.device)];
    }
  }
  for (const int count : joins) EXPECT_EQ(count, 2 * graph.n_layers - 1);
}

// The tasks of which each task can be sure that they are done, worked out without TaskOrder.
std::vector<std::set<size_t>> done_before(const std::vector<Task>& tasks) {
  std::vector<std::set<size_t>> before(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    std::vector<size_t> direct(tasks[i].waits.begin(), tasks[i].waits.end());
    for (size_t j = 0; j < i; ++j) {
      if (tasks[j].device == tasks[i].device) direct.push_back(j);
    }
    for (const size_t j : direct) {
      EXPECT_LT(j, i);
      before[i].insert(j);
      before[i].insert(before[j].begin(), before[j].end());
    }
  }
  return before;
}

struct Bytes {
  int64_t begin = 0;
  int64_t end = 0;
  bool overlaps(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

// Memory of a tensor, its padding rows included; a window's columns are taken row by row, so two
// windows of one tensor do not overlap.
std::vector<Bytes> bytes_of(const TaskList& list, TensorId id, int64_t logit_rows) {
  const graph::Tensor& tensor = list.cut->graph.tensor(id);
  const Slot& slot = list.memory.slots[static_cast<size_t>(id)];
  const int32_t block = list.cut->tensor_blocks[static_cast<size_t>(id)];
  const int64_t rows = tensor.rows == RowCount::kLogits
                           ? logit_rows
                           : list.cut->blocks[static_cast<size_t>(block)].padded;
  std::vector<Bytes> bytes;
  for (int64_t row = 0; row < rows && tensor.width > 0; ++row) {
    const int64_t begin = slot.offset + row * slot.row_stride;
    bytes.push_back({begin, begin + tensor.width * graph::dtype_bytes(tensor.type)});
    EXPECT_LE(bytes.back().end, list.memory.bytes);
  }
  return bytes;
}

bool overlap(const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Bytes& x) {
    return std::any_of(b.begin(), b.end(), [&](const Bytes& y) { return x.overlaps(y); });
  });
}

// Two tasks that touch the same bytes, one of them writing, must be ordered by waits and queues,
// whichever devices run them; within a task no two tensors share memory.
void expect_ordered(const TaskList& list, int64_t logit_rows) {
  const auto before = done_before(list.tasks);
  std::vector<std::vector<Bytes>> bytes;
  for (size_t i = 0; i < list.cut->graph.tensors.size(); ++i) {
    bytes.push_back(bytes_of(list, static_cast<TensorId>(i), logit_rows));
  }
  const auto conflict = [&](const Task& writer, const Task& other) {
    for (const graph::OpId id : writer.program.ops) {
      const TensorId out = list.cut->graph.op(id).output;
      for (const TensorId tensor : other.program.tensors) {
        const bool same = &writer == &other && tensor == out;
        if (!same && overlap(bytes[static_cast<size_t>(out)], bytes[static_cast<size_t>(tensor)])) {
          const auto whole = [&](TensorId t) {
            const TensorId of = list.cut->graph.tensor(t).window_of;
            return of >= 0 ? of : t;
          };
          // The same tensor under the name of a window of it.
          if (&writer == &other && whole(out) == whole(tensor)) continue;
          return true;
        }
      }
    }
    return false;
  };
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      if (before[i].contains(j)) continue;
      EXPECT_FALSE(conflict(list.tasks[i], list.tasks[j]) || conflict(list.tasks[j], list.tasks[i]))
          << list.tasks[j].name << " (" << j << ") and " << list.tasks[i].name << " (" << i << ")";
    }
  }
}

// Who wrote what a task reads is done before it starts.
void expect_read_after_write(const TaskList& list, int64_t logit_rows) {
  const auto before = done_before(list.tasks);
  const graph::Graph& graph = list.cut->graph;
  for (size_t i = 0; i < list.tasks.size(); ++i) {
    for (const graph::OpId id : list.tasks[i].program.ops) {
      for (const TensorId input : graph.op(id).inputs) {
        const auto wanted = bytes_of(list, input, logit_rows);
        for (size_t j = 0; j < i; ++j) {
          if (before[i].contains(j)) continue;
          for (const graph::OpId other : list.tasks[j].program.ops) {
            EXPECT_FALSE(overlap(wanted, bytes_of(list, graph.op(other).output, logit_rows)))
                << list.tasks[i].name << " reads what " << list.tasks[j].name << " writes";
          }
        }
      }
    }
  }
}

TEST(Lower, MoreTasksThanADeviceKeepsTheTimesOfAreRefused) {
  const model::Model model = load("q4_0-small.gguf");
  const graph::Graph graph = *graph::build(model);
  std::vector<device::DeviceInfo> infos = plain(2);
  infos[0].name = "a";
  infos[1].name = "b";
  DefaultPlanOptions options;
  options.split = *parse_split("paired:1/1", 2);
  const std::vector<DeviceRates> rates(2, {1, 1});
  const auto lowered = [&](int64_t rows) {
    options.max_rows = rows;
    Plan plan = default_plan(graph, infos, rates, options);
    plan.buckets.back().chunks = {1};
    return lower(plan, plan.buckets.back(), graph, rows, 1, infos);
  };
  // As many chunks times layers as a deep model may have.
  const auto most = 4096 / graph.n_layers - 1;
  const auto refused = lowered(most);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("device a"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(lowered(64).has_value());
}

TEST(Lower, TasksThatShareMemoryAreOrdered) {
  std::mt19937 random(11);
  for (const char* name : {"q4_1-narrow-mlp.gguf", "f16-untied.gguf", "f32-odd.gguf"}) {
    const model::Model model = load(name);
    const graph::Graph graph = *graph::build(model);
    for (int round = 0; round < 12; ++round) {
      const int64_t rows = 1 + static_cast<int64_t>(random() % 40);
      const Plan plan = round == 0 ? mixed_plan(graph)
                                   : testing::random_plan(graph, {"a", "b", "c"}, rows, random);
      SCOPED_TRACE(fmt::format("{}, round {}, {} rows", name, round, rows));
      const auto infos = round % 2 == 0 ? three_devices() : plain(3);
      const auto list = lower(plan, plan.buckets[0], graph, rows, 5, infos);
      ASSERT_TRUE(list.has_value()) << list.error().message;
      expect_ordered(*list, std::min<int64_t>(5, rows));
      expect_read_after_write(*list, std::min<int64_t>(5, rows));
    }
  }
}

TEST(PlanMemory, LayersUseTheSameSlots) {
  const model::Model model = load("q4_1-narrow-mlp.gguf");
  const graph::Graph graph = *graph::build(model);
  ASSERT_GE(graph.n_layers, 2);
  const Plan plan = single_device_plan(graph, "cpu", 64, "f32");
  const auto list = lower(plan, plan.buckets[0], graph, 64, 1, plain(1));
  ASSERT_TRUE(list.has_value());
  int64_t all = 0;
  std::map<std::string, std::set<int64_t>> offsets;
  for (size_t i = 0; i < list->cut->graph.tensors.size(); ++i) {
    const graph::Tensor& tensor = list->cut->graph.tensors[i];
    all += 64 * list->memory.slots[i].row_stride;
    if (tensor.name.rfind("blk.", 0) != 0 || tensor.width == 0) continue;
    const std::string part = tensor.name.substr(tensor.name.find('.', 4) + 1);
    if (part == "q" || part == "k" || part == "v" || part == "gate" || part == "attention") {
      offsets[part].insert(list->memory.slots[i].offset);
    }
  }
  EXPECT_LT(list->memory.bytes, all / 2);
  ASSERT_EQ(offsets.size(), 5u);
  for (const auto& [part, places] : offsets) EXPECT_LE(places.size(), 2u) << part;
}

TEST(Lower, AStaticDeviceGetsItsLengths) {
  const model::Model model = load("q4_1-narrow-mlp.gguf");
  const graph::Graph graph = *graph::build(model);
  const auto infos = three_devices();
  Plan plan = single_device_plan(graph, "b", 512, "f32");
  for (const int64_t rows : {1, 7, 8, 9, 31, 32, 33, 64, 65, 200, 512}) {
    const auto list = lower(plan, plan.buckets[0], graph, rows, 1, std::span(infos).subspan(1, 1));
    ASSERT_TRUE(list.has_value());
    EXPECT_FALSE(list->any_rows);
    int64_t covered = 0;
    for (const Block& block : list->cut->blocks) {
      EXPECT_EQ(block.begin, covered);
      covered += block.rows;
      EXPECT_GE(block.padded, block.rows);
    }
    EXPECT_EQ(covered, rows);
    for (const Task& task : list->tasks) {
      const auto& lengths = infos[1].standard_rows;
      EXPECT_NE(std::find(lengths.begin(), lengths.end(), task.program.max_rows), lengths.end());
    }
  }
  const std::vector<device::DeviceInfo> none = [&] {
    std::vector<device::DeviceInfo> one = {infos[1]};
    one[0].standard_rows = {4, 8};
    return one;
  }();
  const auto refused = lower(plan, plan.buckets[0], graph, 64, 16, none);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace troika::plan
