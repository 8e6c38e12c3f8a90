#include "troika/device/openvino/module/stage_compiler.h"

#include <gtest/gtest.h>

#include "tests/repository.h"
#include "troika/device/openvino/module/graph_task.h"
#include "troika/device/openvino/program_rig.h"
#include "troika/model/model.h"

namespace troika::device::openvino {
namespace {

using testing::nmse;
using testing::program_of;
using testing::Rig;

class StageCompilerTest : public ::testing::Test {
 protected:
  StageCompilerTest()
      : model_(*model::Model::load(repository_path("tests/models/q4_1-like-default.gguf"))),
        graph_(*graph::build(model_)) {
    OpenVinoOptions options;
    options.plugin = Plugin::kCpu;
    plugin_ = std::move(*open_plugin(options));
  }

  // The operators of a stage.
  Program program(graph::Stage stage, int64_t rows) const {
    size_t first = 0;
    while (graph_.ops[first].stage != stage) ++first;
    size_t last = first;
    while (last < graph_.ops.size() && graph_.ops[last].stage == stage) ++last;
    return program_of(graph_, first, last, rows);
  }

  void run(StageCompiler& compiler, const Program& program, Rig& rig) {
    const Segment segment = (*make_segments(program)).front();
    GraphTask task(program, segment, *compiler.compile(program, segment),
                   std::make_shared<TaskCounters>());
    std::vector<TensorView> views;
    for (const graph::TensorId id : program.tensors) views.push_back(rig.view(id));
    task.run({views, &rig.batch()}, program.max_rows);
  }

  model::Model model_;
  graph::Graph graph_;
  std::unique_ptr<PluginState> plugin_;
};

// The graphs that an NPU gets, computed by the CPU plug-in: one for each length, weights in FP16.
TEST_F(StageCompilerTest, GraphsForAnNpuDifferByTheRoundingOfWeights) {
  for (const graph::Stage stage : {graph::Stage::kG1, graph::Stage::kG2}) {
    const Program stage_program = program(stage, 128);
    Rig exact(graph_, 128, 128);
    Rig half(graph_, 128, 128);
    StageCompiler blocks(*plugin_, "");
    run(blocks, stage_program, exact);
    plugin_->weights = WeightForm::kHalf;
    plugin_->most_rows = kMaxStandardRows;
    StageCompiler halves(*plugin_, "");
    run(halves, stage_program, half);
    plugin_->weights = WeightForm::kBlocks;
    for (const graph::TensorId output : stage_program.outputs) {
      if (graph_.tensor(output).width == 0) continue;
      const double error = nmse(half, exact, output);
      EXPECT_LT(error, 1e-6) << graph_.tensor(output).name;
      EXPECT_GT(error, 1e-10) << graph_.tensor(output).name;
    }
  }
}

TEST_F(StageCompilerTest, DescribesGraphsByWhatIsComputed) {
  const auto describe = [&](const Program& program, int64_t rows) {
    GraphForm form;
    form.rows = rows;
    return describe_graph(program, (*make_segments(program)).front(), form,
                          [](const model::Weight& weight) { return weight.name; });
  };
  const std::string g1 = describe(program(graph::Stage::kG1, 64), 64);
  EXPECT_EQ(describe(program(graph::Stage::kG1, 128), 64), g1);
  EXPECT_NE(describe(program(graph::Stage::kG1, 64), 32), g1);
  EXPECT_NE(describe(program(graph::Stage::kG2, 64), 64), g1);
  const auto changed = [&](auto&& change) {
    Program other = program(graph::Stage::kG1, 64);
    graph::Graph copy = graph_;
    other.graph = &copy;
    change(other, copy);
    return describe(other, 64);
  };
  EXPECT_EQ(changed([](Program&, graph::Graph&) {}), g1);
  const auto op_of = [](const Program& p, graph::Graph& g, graph::OpKind kind) -> graph::Op& {
    for (const graph::OpId id : p.ops) {
      if (g.op(id).kind == kind) return g.ops[static_cast<size_t>(id)];
    }
    return g.ops.front();
  };
  using graph::OpKind;
  EXPECT_NE(changed([&](auto& p, auto& g) { op_of(p, g, OpKind::kMatMul).n_begin = 32; }), g1);
  EXPECT_NE(changed([&](auto& p, auto& g) { op_of(p, g, OpKind::kMatMul).k_begin = 32; }), g1);
  EXPECT_NE(changed([&](auto& p, auto& g) { op_of(p, g, OpKind::kRmsNorm).eps *= 2; }), g1);
  EXPECT_NE(changed([&](auto& p, auto& g) {
              op_of(p, g, OpKind::kRope).heads.rope_pairs = model::RopePairs::kHalves;
            }),
            g1);
  EXPECT_NE(changed([&](auto& p, auto&) { p.outputs.push_back(p.tensors[1]); }), g1);
}

}  // namespace
}  // namespace troika::device::openvino
