#include <gtest/gtest.h>

#include "troika/device/cpu/step.h"

namespace troika::device::cpu {
namespace {

using graph::OpKind;
using graph::RowCount;
using graph::TensorId;

// A graph put together by hand; its tensors are all of one width.
class Sketch {
 public:
  TensorId input() { return tensor(RowCount::kTokens, -1); }

  TensorId op(OpKind kind, std::vector<TensorId> inputs, RowCount rows = RowCount::kTokens) {
    graph::Op op;
    op.kind = kind;
    op.inputs = std::move(inputs);
    op.output = tensor(rows, static_cast<graph::OpId>(graph_.ops.size()));
    if (kind == OpKind::kMatMul) op.weight = &weight_;
    graph_.ops.push_back(op);
    return op.output;
  }
  TensorId product(TensorId x) { return op(OpKind::kMatMul, {x}); }

  // The steps of operators [0, count); the others read their results elsewhere.
  std::vector<Step> steps(size_t count = SIZE_MAX) {
    program_.graph = &graph_;
    for (size_t i = 0; i < std::min(count, graph_.ops.size()); ++i) {
      program_.ops.push_back(static_cast<graph::OpId>(i));
    }
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      program_.tensors.push_back(static_cast<TensorId>(i));
    }
    if (graph_.logits >= 0) program_.outputs.push_back(graph_.logits);
    for (size_t i = count; i < graph_.ops.size(); ++i) {
      const auto& inputs = graph_.ops[i].inputs;
      program_.outputs.insert(program_.outputs.end(), inputs.begin(), inputs.end());
    }
    return make_steps(program_);
  }
  void set_logits(TensorId id) { graph_.logits = id; }
  void make_window(TensorId tensor, TensorId of, int64_t begin) {
    graph_.tensors[static_cast<size_t>(tensor)].window_of = of;
    graph_.tensors[static_cast<size_t>(tensor)].window_begin = begin;
  }
  void set_width(TensorId tensor, int64_t width) {
    graph_.tensors[static_cast<size_t>(tensor)].width = width;
  }

 private:
  TensorId tensor(RowCount rows, graph::OpId producer) {
    graph::Tensor tensor;
    tensor.width = 32;
    tensor.rows = rows;
    tensor.producer = producer;
    graph_.tensors.push_back(tensor);
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  }

  model::Weight weight_;
  graph::Graph graph_;
  Program program_;
};

std::vector<StepKind> kinds(const std::vector<Step>& steps) {
  std::vector<StepKind> kinds;
  for (const Step& step : steps) kinds.push_back(step.kind);
  return kinds;
}

using Kinds = std::vector<StepKind>;

TEST(MakeSteps, FoldsAResidualIntoItsProductOnEitherSide) {
  for (const bool product_first : {true, false}) {
    Sketch s;
    const TensorId x = s.input();
    const TensorId y = s.input();
    const TensorId p = s.product(y);
    const TensorId sum = s.op(OpKind::kAdd, product_first ? std::vector{p, x} : std::vector{x, p});
    const auto steps = s.steps();
    ASSERT_EQ(kinds(steps), Kinds{StepKind::kMatMuls});
    ASSERT_EQ(steps[0].ops.size(), 1u);
    EXPECT_EQ(steps[0].ops[0].add, x);
    EXPECT_EQ(steps[0].ops[0].output, sum);
    EXPECT_EQ(steps[0].ops[0].inputs, std::vector<TensorIndex>{y});
  }
}

TEST(MakeSteps, KeepsAResidualApartWhoseProductIsReadElsewhere) {
  {
    Sketch s;  // by a later operator of the program
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    const TensorId sum = s.op(OpKind::kAdd, {x, p});
    s.op(OpKind::kAdd, {sum, p});
    const auto steps = s.steps();
    EXPECT_EQ(kinds(steps), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
    EXPECT_EQ(steps[0].ops[0].add, -1);
    EXPECT_EQ(steps[0].ops[0].output, p);
  }
  {
    Sketch s;  // by an operator of another task
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    s.op(OpKind::kAdd, {x, p});
    s.op(OpKind::kRmsNorm, {p});
    EXPECT_EQ(kinds(s.steps(2)), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // by whoever wants the logits
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    s.op(OpKind::kAdd, {x, p});
    s.set_logits(p);
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
}

TEST(MakeSteps, FoldsNoResidualThatTheSameStepWrites) {
  {
    Sketch s;  // the sum of two products side by side
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    const TensorId q = s.product(x);
    s.op(OpKind::kAdd, {p, q});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // a product doubled
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    s.op(OpKind::kAdd, {p, p});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // only the last product of a step is folded into, and only once
    const TensorId x = s.input();
    const TensorId p = s.product(x);
    s.product(x);
    const TensorId sum = s.op(OpKind::kAdd, {p, x});
    s.op(OpKind::kAdd, {sum, x});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;
    const TensorId x = s.input();
    const TensorId y = s.input();
    const TensorId first = s.op(OpKind::kAdd, {s.product(x), x});
    s.op(OpKind::kAdd, {first, y});
    const auto steps = s.steps();
    EXPECT_EQ(kinds(steps), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
    EXPECT_EQ(steps[0].ops[0].add, x);
  }
}

TEST(MakeSteps, FoldsTheGateIntoItsTwoProducts) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId gate = s.product(x);
  const TensorId up = s.product(x);
  const TensorId out = s.op(OpKind::kSiluMul, {gate, up});
  const TensorId down = s.product(out);
  s.op(OpKind::kAdd, {x, down});
  const auto steps = s.steps();
  ASSERT_EQ(kinds(steps), (Kinds{StepKind::kGatedMlp, StepKind::kMatMuls}));
  ASSERT_EQ(steps[0].ops.size(), 3u);
  EXPECT_EQ(steps[0].ops[0].output, gate);
  EXPECT_EQ(steps[0].ops[1].output, up);
  EXPECT_EQ(steps[0].ops[2].output, out);
  EXPECT_EQ(steps[1].ops[0].add, x);
}

TEST(MakeSteps, KeepsAGateApartThatDoesNotFit) {
  {
    Sketch s;  // the gate's product is read elsewhere
    const TensorId x = s.input();
    const TensorId gate = s.product(x);
    s.op(OpKind::kSiluMul, {gate, s.product(x)});
    s.op(OpKind::kRmsNorm, {gate});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // up * silu(gate) in the wrong order
    const TensorId x = s.input();
    const TensorId up = s.product(x);
    const TensorId gate = s.product(x);
    s.op(OpKind::kSiluMul, {gate, up});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // a third product stands in the step
    const TensorId x = s.input();
    s.product(x);
    const TensorId gate = s.product(x);
    s.op(OpKind::kSiluMul, {gate, s.product(x)});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
  {
    Sketch s;  // one product twice
    const TensorId x = s.input();
    const TensorId gate = s.product(x);
    s.op(OpKind::kSiluMul, {gate, gate});
    EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
  }
}

TEST(MakeSteps, PutsProductsOfOneInputSideBySide) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId table = s.input();
  const TensorId normed = s.op(OpKind::kRmsNorm, {x});
  const TensorId q = s.product(normed);
  const TensorId k = s.product(normed);
  const TensorId v = s.product(normed);
  const TensorId turned = s.op(OpKind::kRope, {q, table});
  s.op(OpKind::kRope, {k, table});
  const TensorId kv = s.op(OpKind::kKvWrite, {k, v});
  s.op(OpKind::kAttention, {turned, kv});
  const auto steps = s.steps();
  EXPECT_EQ(kinds(steps),
            (Kinds{StepKind::kRows, StepKind::kMatMuls, StepKind::kRows, StepKind::kAttention}));
  EXPECT_EQ(steps[1].ops.size(), 3u);
  EXPECT_EQ(steps[2].ops.size(), 3u);
}

TEST(MakeSteps, PutsDependentProductsBehindEachOther) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId first = s.product(x);
  s.product(first);
  EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kMatMuls}));

  Sketch folded;  // the second one reads what the first one writes only since the fold
  const TensorId y = folded.input();
  const TensorId sum = folded.op(OpKind::kAdd, {y, folded.product(y)});
  folded.product(sum);
  const auto steps = folded.steps();
  EXPECT_EQ(kinds(steps), (Kinds{StepKind::kMatMuls, StepKind::kMatMuls}));
  EXPECT_EQ(steps[0].ops[0].add, y);
}

TEST(MakeSteps, KeepsTokensAndWantedRowsApart) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId sum = s.op(OpKind::kAdd, {x, x});
  const TensorId wanted = s.op(OpKind::kGatherRows, {sum}, RowCount::kLogits);
  s.op(OpKind::kRmsNorm, {wanted}, RowCount::kLogits);
  const auto steps = s.steps();
  ASSERT_EQ(kinds(steps), (Kinds{StepKind::kRows, StepKind::kRows}));
  EXPECT_EQ(steps[0].rows, RowCount::kTokens);
  EXPECT_EQ(steps[1].rows, RowCount::kLogits);
  EXPECT_EQ(steps[1].ops.size(), 2u);
}

TEST(MakeSteps, AProductOfAFrameWaitsForThoseThatWriteItsWindows) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId frame = s.input();
  s.set_width(frame, 64);
  s.make_window(s.product(x), frame, 0);
  s.make_window(s.product(x), frame, 32);
  s.product(frame);
  const auto steps = s.steps();
  ASSERT_EQ(kinds(steps), (Kinds{StepKind::kMatMuls, StepKind::kMatMuls}));
  EXPECT_EQ(steps[0].ops.size(), 2u);
}

TEST(MakeSteps, FoldsNothingThatOthersReadAsPartOfAFrame) {
  Sketch s;
  const TensorId x = s.input();
  const TensorId frame = s.input();
  s.set_width(frame, 64);
  const TensorId product = s.product(x);
  s.make_window(product, frame, 32);
  s.op(OpKind::kAdd, {x, product});
  s.set_logits(frame);
  EXPECT_EQ(kinds(s.steps()), (Kinds{StepKind::kMatMuls, StepKind::kRows}));
}

}  // namespace
}  // namespace troika::device::cpu
