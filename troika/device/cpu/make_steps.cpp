#include <algorithm>

#include "troika/device/cpu/step.h"

namespace troika::device::cpu {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

TensorIndex index_of(const Program& program, TensorId tensor) {
  return static_cast<TensorIndex>(program.index_of(tensor));
}

BoundOp bind(const Program& program, const Op& op) {
  BoundOp bound;
  bound.op = &op;
  for (const TensorId input : op.inputs) bound.inputs.push_back(index_of(program, input));
  bound.output = index_of(program, op.output);
  if (op.kind == OpKind::kMatMul) {
    bound.weights_stride = op.weight->row_bytes();
    bound.weights = graph::row_of(graph::weight_slice(*program.graph, op), 0);
  }
  return bound;
}

bool any_overlaps(const Program& program, const std::vector<TensorId>& list, TensorId tensor) {
  return std::any_of(list.begin(), list.end(),
                     [&](TensorId other) { return program.graph->overlap(other, tensor); });
}

// True if nobody but `reader` reads `tensor`.
bool read_only_by(const Program& program, TensorId tensor, const Op& reader) {
  if (any_overlaps(program, program.outputs, tensor)) return false;
  return std::none_of(program.ops.begin(), program.ops.end(), [&](graph::OpId id) {
    const Op& op = program.graph->op(id);
    return &op != &reader && any_overlaps(program, op.inputs, tensor);
  });
}

bool writes(const Program& program, const Step& step, TensorId tensor) {
  return std::any_of(step.ops.begin(), step.ops.end(), [&](const BoundOp& bound) {
    return program.graph->overlap(program.tensors[static_cast<size_t>(bound.output)], tensor);
  });
}

bool depends_on(const Program& program, const Op& op, const Step& step) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](TensorId input) { return writes(program, step, input); });
}

StepKind kind_of(const Op& op) {
  if (op.kind == OpKind::kMatMul) return StepKind::kMatMuls;
  if (op.kind == OpKind::kAttention) return StepKind::kAttention;
  return StepKind::kRows;
}

// x + (W y) directly after the product: the product adds x itself.
bool fold_residual(const Program& program, const Op& op, std::vector<Step>& steps) {
  if (op.kind != OpKind::kAdd || op.inputs.size() != 2 || steps.empty() ||
      steps.back().kind != StepKind::kMatMuls) {
    return false;
  }
  BoundOp& product = steps.back().ops.back();
  if (product.add >= 0) return false;
  const auto own = std::find(op.inputs.begin(), op.inputs.end(), product.op->output);
  if (own == op.inputs.end() || !read_only_by(program, product.op->output, op)) return false;
  const TensorId other = own == op.inputs.begin() ? op.inputs[1] : op.inputs[0];
  if (writes(program, steps.back(), other)) return false;
  product.add = index_of(program, other);
  product.output = index_of(program, op.output);
  return true;
}

// silu(gate) * up directly after a step of exactly these two products.
bool fold_gate(const Program& program, const Op& op, std::vector<Step>& steps) {
  if (op.kind != OpKind::kSiluMul || steps.empty()) return false;
  Step& last = steps.back();
  if (last.kind != StepKind::kMatMuls || last.ops.size() != 2) return false;
  const Op& gate = *last.ops[0].op;
  const Op& up = *last.ops[1].op;
  if (op.inputs[0] != gate.output || op.inputs[1] != up.output) return false;
  if (!read_only_by(program, gate.output, op) || !read_only_by(program, up.output, op))
    return false;
  last.kind = StepKind::kGatedMlp;
  last.ops.push_back(bind(program, op));
  return true;
}

}  // namespace

std::vector<Step> make_steps(const Program& program) {
  std::vector<Step> steps;
  for (const graph::OpId id : program.ops) {
    const Op& op = program.graph->op(id);
    if (fold_residual(program, op, steps) || fold_gate(program, op, steps)) continue;
    const StepKind kind = kind_of(op);
    const graph::RowCount rows = program.graph->tensor(op.output).rows;
    // Row operators may follow each other within a row; products may stand side by side.
    const bool joins = !steps.empty() && steps.back().kind == kind && steps.back().rows == rows &&
                       (kind == StepKind::kRows ||
                        (kind == StepKind::kMatMuls && !depends_on(program, op, steps.back())));
    if (!joins) {
      Step step;
      step.kind = kind;
      step.rows = rows;
      steps.push_back(std::move(step));
    }
    steps.back().ops.push_back(bind(program, op));
  }
  return steps;
}

std::vector<Program> cut_at_products(const Program& program) {
  std::vector<Program> pieces;
  bool may_join = false;
  for (const graph::OpId id : program.ops) {
    const bool is_product = program.graph->op(id).kind == OpKind::kMatMul;
    if (is_product || !may_join) pieces.emplace_back(program).ops.clear();
    pieces.back().ops.push_back(id);
    may_join = !is_product;
  }
  return pieces;
}

int64_t scratch_floats(const std::vector<Step>& steps, const Program& program,
                       const KernelTable& kernels) {
  int64_t most = 0;
  for (const Step& step : steps) {
    for (const BoundOp& bound : step.ops) {
      const Op& op = *bound.op;
      if (op.kind == OpKind::kMatMul) {
        most = std::max(most, kernels.matmul_scratch_floats(
                                  program.max_rows, program.graph->tensor(op.inputs[0]).width));
      } else if (op.kind == OpKind::kAttention) {
        most = std::max(most, kernels.attention_scratch_floats(op.heads.group, op.heads.head_dim));
      }
    }
  }
  return most;
}

}  // namespace troika::device::cpu
