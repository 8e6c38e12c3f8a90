#include "troika/device/openvino/module/segments.h"

#include <gtest/gtest.h>

namespace troika::device::openvino {
namespace {

using graph::Op;
using graph::OpKind;
using graph::RowCount;
using graph::TensorId;

class Sketch {
 public:
  Sketch() { program_.graph = &graph_; }

  TensorId tensor(RowCount rows = RowCount::kTokens) {
    graph::Tensor tensor;
    tensor.width = 32;
    tensor.rows = rows;
    graph_.tensors.push_back(tensor);
    program_.tensors.push_back(static_cast<TensorId>(graph_.tensors.size() - 1));
    return program_.tensors.back();
  }
  TensorId window(TensorId of, int64_t begin, int64_t width) {
    const TensorId id = tensor();
    graph::Tensor& window = graph_.tensors.back();
    window.window_of = of;
    window.window_begin = begin;
    window.width = width;
    return id;
  }
  TensorId op(OpKind kind, std::vector<TensorId> inputs, TensorId output) {
    Op op;
    op.kind = kind;
    op.inputs = std::move(inputs);
    op.output = output;
    if (kind == OpKind::kMatMul) op.weight = &weight_;
    program_.ops.push_back(static_cast<graph::OpId>(graph_.ops.size()));
    graph_.ops.push_back(op);
    return output;
  }
  TensorId op(OpKind kind, std::vector<TensorId> inputs, RowCount rows = RowCount::kTokens) {
    return op(kind, std::move(inputs), tensor(rows));
  }
  void output(TensorId id) { program_.outputs.push_back(id); }

  Program& program() { return program_; }
  std::vector<Segment> segments(GraphUse use = GraphUse::kStages) {
    return *make_segments(program_, use);
  }
  // Tensors by id.
  std::vector<TensorId> ids(const std::vector<size_t>& indices) const {
    std::vector<TensorId> ids;
    for (const size_t index : indices) ids.push_back(program_.tensors[index]);
    return ids;
  }

 private:
  const model::Weight weight_;
  graph::Graph graph_;
  Program program_;
};

using Ids = std::vector<TensorId>;

TEST(Segments, AStageIsOneGraphThatWritesOnlyWhatOthersRead) {
  Sketch s;
  const TensorId x = s.tensor();
  const TensorId attended = s.tensor();
  const TensorId sum = s.op(OpKind::kAdd, {x, s.op(OpKind::kMatMul, {attended})});
  const TensorId normed = s.op(OpKind::kRmsNorm, {sum});
  const TensorId gated =
      s.op(OpKind::kSiluMul, {s.op(OpKind::kMatMul, {normed}), s.op(OpKind::kMatMul, {normed})});
  const TensorId out = s.op(OpKind::kAdd, {sum, s.op(OpKind::kMatMul, {gated})});
  s.output(out);
  const auto segments = s.segments();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_FALSE(segments[0].on_host);
  EXPECT_EQ(segments[0].ops.size(), 8u);
  EXPECT_EQ(s.ids(segments[0].inputs), (Ids{attended, x}));
  EXPECT_EQ(s.ids(segments[0].outputs), Ids{out});
}

TEST(Segments, WhatTheHostReadsIsWritten) {
  Sketch s;
  const TensorId x = s.tensor();
  const TensorId q = s.op(OpKind::kMatMul, {x});
  const TensorId k = s.op(OpKind::kMatMul, {x});
  const TensorId v = s.op(OpKind::kMatMul, {x});
  const TensorId kv = s.op(OpKind::kKvWrite, {k, v});
  const TensorId attended = s.op(OpKind::kAttention, {q, kv});
  const TensorId out = s.op(OpKind::kMatMul, {attended});
  s.output(out);
  const auto segments = s.segments();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(s.ids(segments[0].outputs), (Ids{q, k, v}));
  EXPECT_TRUE(segments[1].on_host);
  EXPECT_EQ(segments[1].ops.size(), 2u);
  EXPECT_EQ(s.ids(segments[2].inputs), Ids{attended});
  EXPECT_EQ(s.ids(segments[2].outputs), Ids{out});
}

// Of a row, products that read the same are one graph, and nothing else is one.
TEST(Segments, ProductsOfOneInputAreOneGraph) {
  Sketch s;
  const TensorId x = s.tensor();
  const TensorId normed = s.op(OpKind::kRmsNorm, {x});
  const TensorId gate = s.op(OpKind::kMatMul, {normed});
  const TensorId up = s.op(OpKind::kMatMul, {normed});
  const TensorId gated = s.op(OpKind::kSiluMul, {gate, up});
  const TensorId down = s.op(OpKind::kMatMul, {gated});
  s.output(s.op(OpKind::kMatMul, {down}));
  const auto segments = s.segments(GraphUse::kProducts);
  ASSERT_EQ(segments.size(), 5u);
  for (const size_t host : {size_t{0}, size_t{2}}) EXPECT_TRUE(segments[host].on_host);
  for (const size_t graph : {size_t{1}, size_t{3}, size_t{4}}) {
    EXPECT_TRUE(segments[graph].one_product);
    EXPECT_FALSE(segments[graph].on_host);
  }
  EXPECT_EQ(s.ids(segments[1].inputs), Ids{normed});
  EXPECT_EQ(s.ids(segments[1].outputs), (Ids{gate, up}));
  EXPECT_EQ(s.ids(segments[3].outputs), Ids{down});
}

TEST(Segments, TokensAndWantedRowsAreGraphsApart) {
  Sketch s;
  const TensorId x = s.tensor();
  s.output(s.op(OpKind::kRmsNorm, {x}));
  s.output(s.op(OpKind::kRmsNorm, {s.tensor(RowCount::kLogits)}, RowCount::kLogits));
  const auto segments = s.segments();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].rows, RowCount::kTokens);
  EXPECT_EQ(segments[1].rows, RowCount::kLogits);
}

TEST(Segments, AWindowIsReadFromMemory) {
  Sketch s;
  const TensorId x = s.tensor();
  const TensorId whole = s.tensor();
  const TensorId left = s.op(OpKind::kMatMul, {x}, s.window(whole, 0, 16));
  const TensorId right = s.op(OpKind::kMatMul, {x}, s.window(whole, 16, 16));
  const TensorId part = s.window(right, 8, 8);
  s.output(s.op(OpKind::kRmsNorm, {part}));
  s.output(s.op(OpKind::kRmsNorm, {whole}));
  const auto segments = s.segments();
  // The two windows do not overlap and may be written by one graph; both are read behind it.
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].ops.size(), 2u);
  EXPECT_EQ(s.ids(segments[0].outputs), (Ids{left, right}));
  EXPECT_EQ(s.ids(segments[1].inputs), (Ids{part, whole}));
}

TEST(Segments, ATensorWrittenTwiceIsWrittenInOrder) {
  Sketch s;
  const TensorId x = s.tensor();
  const TensorId y = s.op(OpKind::kRmsNorm, {x});
  s.op(OpKind::kAdd, {y, x}, y);
  s.output(y);
  EXPECT_EQ(s.segments().size(), 2u);
}

TEST(Segments, ATensorThatIsNotListedIsAnError) {
  Sketch s;
  s.op(OpKind::kRmsNorm, {s.tensor()});
  s.program().tensors.erase(s.program().tensors.begin());
  const auto segments = make_segments(s.program());
  ASSERT_FALSE(segments.has_value());
  EXPECT_EQ(segments.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::device::openvino
