// What the `cpu` device makes of a Program: steps, run by all threads of a team with a barrier
// between two of them.
#pragma once

#include <cstdint>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/cpu/team.h"
#include "troika/device/device.h"

namespace troika::device::cpu {

// Index into Program::tensors; -1: none.
using TensorIndex = int32_t;

// One operator with its tensors found, and the operators that were folded into it.
struct BoundOp {
  const graph::Op* op = nullptr;
  std::vector<TensorIndex> inputs;
  TensorIndex output = -1;
  TensorIndex add = -1;  // kMatMul: a residual that is added
};

enum class StepKind {
  kRows,       // operators that treat each row alone, in order, for a range of rows
  kMatMuls,    // products that do not depend on each other, cut along N
  kGatedMlp,   // gate and up products and silu(gate) * up, cut along N
  kAttention,  // cut by sequence, rows and heads
};

struct Step {
  StepKind kind = StepKind::kRows;
  std::vector<BoundOp> ops;
  graph::RowCount rows = graph::RowCount::kTokens;
};

// Groups the operators of a program into steps; folds a residual addition into the product before
// it and silu(gate) * up into the two products that feed it, where nobody else reads what lies
// between.
std::vector<Step> make_steps(const Program& program);

// Floats of scratch that one thread needs for any of the steps.
int64_t scratch_floats(const std::vector<Step>& steps, const Program& program,
                       const KernelTable& kernels);

struct StepContext {
  const graph::Graph* graph = nullptr;
  const Bindings* bindings = nullptr;
  const KernelTable* kernels = nullptr;
  Team* team = nullptr;
  float* scratch = nullptr;  // of this thread
};

// This thread's part of a step.
void run_step(const Step& step, const StepContext& context);

}  // namespace troika::device::cpu
