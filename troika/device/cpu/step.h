// What the `cpu` device makes of a Program: steps of independent chunks, run by all threads of a
// team one step after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika/device/device.h"

namespace troika::device::cpu {

// Passes of so many rows are so short that reading the weights is all the time they take.
inline constexpr int64_t kFewRows = 8;

// Index into Program::tensors; -1: none.
using TensorIndex = int32_t;

// One operator with its tensors found, and the operators that were folded into it.
struct BoundOp {
  const graph::Op* op = nullptr;
  std::vector<TensorIndex> inputs;
  TensorIndex output = -1;
  TensorIndex add = -1;  // kMatMul: a residual that is added
  // kMatMul: where the weights of its outputs lie, and how many bytes from output to output.
  const std::byte* weights = nullptr;
  int64_t weights_stride = 0;
  std::shared_ptr<const std::vector<std::byte>> packed;  // owns them if they are a copy
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

// Each product alone, and what lies between two of them: for devices that compute the products and
// leave the rest to the host.
std::vector<Program> cut_at_products(const Program& program);

// Floats of scratch that one thread needs for any of the steps.
int64_t scratch_floats(const std::vector<Step>& steps, const Program& program,
                       const KernelTable& kernels);

struct StepContext {
  const graph::Graph* graph = nullptr;
  const Bindings* bindings = nullptr;
  const KernelTable* kernels = nullptr;
  int threads = 1;                          // that share the chunks
  float* scratch = nullptr;                 // of the thread that runs a chunk
  const std::byte* next_weights = nullptr;  // read after the step, if any are
};

// Into how many chunks a step is cut for this batch and number of threads.
int64_t chunk_count(const Step& step, const StepContext& context);

// One of them; different chunks of a step may run at the same time.
void run_chunk(const Step& step, const StepContext& context, int64_t chunk);

// All steps one after another on the calling thread, which has scratch_floats() at `scratch`: for
// devices that leave some of their operators to the host.
void run_steps(const std::vector<Step>& steps, const graph::Graph& graph,
               const KernelTable& kernels, const Bindings& bindings, float* scratch);

}  // namespace troika::device::cpu
