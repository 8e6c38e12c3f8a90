#include "troika/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/repository.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::graph {
namespace {

using model::TensorType;
using model::testing::TinyModel;

model::Model load(const TinyModel& tiny) {
  const auto bytes = tiny.bytes();
  return *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
}

model::Model load_file(const std::string& name) {
  return *model::Model::load(repository_path("tests/models/") + name);
}

TEST(Graph, HasTheOperatorsOfALayerInOrder) {
  const model::Model model = load(TinyModel());
  const auto graph = build(model);
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  struct Expected {
    OpKind kind;
    Stage stage;
    int64_t width;
  };
  constexpr int64_t kQuery = 64;
  constexpr int64_t kKey = 32;
  const std::vector<Expected> expected = {
      {OpKind::kEmbed, Stage::kInput, 64},     {OpKind::kRopeTable, Stage::kInput, 16},
      {OpKind::kRmsNorm, Stage::kG1, 64},      {OpKind::kMatMul, Stage::kG1, kQuery},
      {OpKind::kMatMul, Stage::kG1, kKey},     {OpKind::kMatMul, Stage::kG1, kKey},
      {OpKind::kRope, Stage::kG1, kQuery},     {OpKind::kRope, Stage::kG1, kKey},
      {OpKind::kKvWrite, Stage::kG1, 0},       {OpKind::kAttention, Stage::kAttention, kQuery},
      {OpKind::kMatMul, Stage::kG2, 64},       {OpKind::kAdd, Stage::kG2, 64},
      {OpKind::kRmsNorm, Stage::kG2, 64},      {OpKind::kMatMul, Stage::kG2, 96},
      {OpKind::kMatMul, Stage::kG2, 96},       {OpKind::kSiluMul, Stage::kG2, 96},
      {OpKind::kMatMul, Stage::kG2, 64},       {OpKind::kAdd, Stage::kG2, 64},
      {OpKind::kGatherRows, Stage::kHead, 64}, {OpKind::kRmsNorm, Stage::kHead, 64},
      {OpKind::kMatMul, Stage::kHead, 300},
  };
  ASSERT_EQ(graph->ops.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    const Op& op = graph->ops[i];
    EXPECT_EQ(to_string(op.kind), to_string(expected[i].kind));
    EXPECT_EQ(to_string(op.stage), to_string(expected[i].stage));
    const bool outside = op.stage == Stage::kInput || op.stage == Stage::kHead;
    EXPECT_EQ(op.layer, outside ? -1 : 0);
    const Tensor& out = graph->tensor(op.output);
    EXPECT_EQ(out.width, expected[i].width);
    EXPECT_EQ(out.producer, static_cast<OpId>(i));
    EXPECT_EQ(out.rows, op.stage == Stage::kHead ? RowCount::kLogits : RowCount::kTokens);
  }
  EXPECT_EQ(graph->logits, graph->ops.back().output);
}

// Whatever the model: inputs come before their readers, stages in order, one writer per tensor.
TEST(Graph, IsSoundForEveryModel) {
  for (const char* name : {"f16-untied.gguf", "f32-odd.gguf", "q8_0-one-head.gguf",
                           "q4_1-like-default.gguf", "mixed-types.gguf", "q4_k_m-like.gguf"}) {
    SCOPED_TRACE(name);
    const model::Model model = load_file(name);
    const auto graph = build(model);
    ASSERT_TRUE(graph.has_value());
    EXPECT_EQ(graph->n_layers, model.hyper_parameters().n_layers);
    std::set<TensorId> written;
    std::pair<int32_t, Stage> place = {-1, Stage::kInput};
    for (const Op& op : graph->ops) {
      for (const TensorId input : op.inputs) EXPECT_TRUE(written.contains(input));
      EXPECT_TRUE(written.insert(op.output).second);
      const int32_t layer = op.stage == Stage::kHead ? INT32_MAX : op.layer;
      EXPECT_LE(place, std::make_pair(layer, op.stage));
      place = {layer, op.stage};
      if (op.kind == OpKind::kMatMul) {
        EXPECT_EQ(op.weight->cols, graph->tensor(op.inputs[0]).width);
        EXPECT_EQ(op.weight->rows, graph->tensor(op.output).width);
      }
    }
    EXPECT_EQ(written.size(), graph->tensors.size());
  }
}

TEST(Graph, TheHeadIsTheEmbeddingUnlessTheModelHasOne) {
  const model::Model tied = load(TinyModel(TensorType::kQ4_0, true));
  EXPECT_EQ(build(tied)->ops.back().weight, tied.find("token_embd.weight"));
  const model::Model untied = load(TinyModel(TensorType::kQ4_0, false));
  EXPECT_EQ(build(untied)->ops.back().weight, untied.find("output.weight"));
}

TEST(Graph, CountsWorkAsByHand) {
  const model::Model model = load(TinyModel(TensorType::kQ4_0, true));
  const Graph graph = *build(model);
  int64_t macs_alone = 0;
  int64_t macs_deep = 0;
  int64_t bytes = 0;
  for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
    macs_alone += macs_per_row(graph, id, 1);
    macs_deep += macs_per_row(graph, id, 100);
    if (graph.op(id).kind != OpKind::kEmbed) bytes += weight_bytes(graph, id);
  }
  // q and o 64x64, k and v 64x32, gate, up and down 64x96, head 64x300.
  constexpr int64_t kMatrices = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 64 * 300;
  // Four heads of 16: one product with K and one with V for each key.
  EXPECT_EQ(macs_alone, kMatrices + 2 * 4 * 16);
  EXPECT_EQ(macs_deep, kMatrices + 2 * 4 * 16 * 100);
  // Q4_0: 18 bytes for 32 weights; three norms of 64 floats.
  EXPECT_EQ(bytes, kMatrices / 32 * 18 + 3 * 64 * 4);
  EXPECT_EQ(weight_bytes(graph, 0), 64 / 32 * 18);  // one row of the embedding
}

TEST(Graph, NamesAMissingTensor) {
  const auto graph = [] {
    const auto bytes = TinyModel().bytes();
    static const model::Model model =
        *model::Model::load(*model::memory_source(bytes), "tiny.gguf",
                            {.weights = false, .threads = 1, .progress = {}});
    return build(model);
  }();
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, ErrorCode::kInvalidData);
  EXPECT_NE(graph.error().message.find("token_embd.weight"), std::string::npos);
}

}  // namespace
}  // namespace troika::graph
