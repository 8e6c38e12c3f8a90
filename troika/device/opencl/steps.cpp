#include "troika/device/opencl/steps.h"

#include <algorithm>

namespace troika::device::opencl {
namespace {

using graph::Op;
using graph::OpKind;
using graph::TensorId;

// Builds the list operator by operator, looking back at what it may be folded into.
class StepMaker {
 public:
  explicit StepMaker(const Program& program) : program_(program), graph_(*program.graph) {}

  std::vector<Step> run() {
    for (const graph::OpId id : program_.ops) add(graph_.op(id));
    fold_norms();
    fold_kv_writes();
    return std::move(steps_);
  }

 private:
  TensorIndex index(TensorId tensor) const {
    const size_t at = program_.index_of(tensor);
    return at == program_.tensors.size() ? -1 : static_cast<TensorIndex>(at);
  }

  bool any_overlaps(const std::vector<TensorId>& list, TensorId tensor) const {
    return std::any_of(list.begin(), list.end(),
                       [&](TensorId other) { return graph_.overlap(other, tensor); });
  }

  // True if nobody but `readers` operators of this program reads it.
  bool read_only_by(TensorId tensor, const std::vector<const Op*>& readers) const {
    if (any_overlaps(program_.outputs, tensor)) return false;
    return std::none_of(program_.ops.begin(), program_.ops.end(), [&](graph::OpId id) {
      const Op& op = graph_.op(id);
      const bool known = std::find(readers.begin(), readers.end(), &op) != readers.end();
      return !known && any_overlaps(op.inputs, tensor);
    });
  }

  TensorId tensor(TensorIndex at) const { return program_.tensors[static_cast<size_t>(at)]; }

  bool writes(const Step& step, TensorId wanted) const {
    if (step.kind != StepKind::kProducts || step.silu != nullptr) {
      return graph_.overlap(tensor(step.output), wanted);
    }
    return std::any_of(step.products.begin(), step.products.end(), [&](const Product& product) {
      return graph_.overlap(tensor(product.output), wanted);
    });
  }

  bool stands_beside(const Op& op) const {
    if (steps_.empty()) return false;
    const Step& last = steps_.back();
    return last.kind == StepKind::kProducts && last.products.size() < kMostProducts &&
           last.add < 0 && last.silu == nullptr && last.inputs[0] == index(op.inputs[0]) &&
           last.op->weight->type == op.weight->type && last.rows == graph_.tensor(op.output).rows &&
           !writes(last, op.inputs[0]);
  }

  void add_product(const Op& op) {
    if (!stands_beside(op)) {
      Step step = plain(op);
      step.kind = StepKind::kProducts;
      steps_.push_back(std::move(step));
    }
    steps_.back().products.push_back(
        {&op, graph::weight_slice(graph_, op), index(op.output), nullptr});
  }

  bool fold_residual(const Op& op) {
    if (op.inputs.size() != 2 || steps_.empty()) return false;
    Step& last = steps_.back();
    if (last.kind != StepKind::kProducts || last.products.size() != 1 || last.add >= 0 ||
        last.silu != nullptr) {
      return false;
    }
    const TensorId product = last.products[0].op->output;
    const auto own = std::find(op.inputs.begin(), op.inputs.end(), product);
    if (own == op.inputs.end() || !read_only_by(product, {&op})) return false;
    const TensorId other = own == op.inputs.begin() ? op.inputs[1] : op.inputs[0];
    if (graph_.overlap(product, other)) return false;
    last.add = index(other);
    last.products[0].output = index(op.output);
    last.output = index(op.output);
    return true;
  }

  bool fold_silu(const Op& op) {
    if (steps_.empty()) return false;
    Step& last = steps_.back();
    if (last.kind != StepKind::kProducts || last.products.size() != 2 || last.silu != nullptr) {
      return false;
    }
    for (size_t i = 0; i < 2; ++i) {
      const TensorId product = last.products[i].op->output;
      if (op.inputs[i] != product || !read_only_by(product, {&op})) return false;
    }
    last.silu = &op;
    last.output = index(op.output);
    return true;
  }

  // The step that rotates `tensor`, among those directly before; npos if none.
  size_t rope_before(TensorId wanted) const {
    for (size_t i = steps_.size(); i-- > 0;) {
      const Step& step = steps_[i];
      if (step.kind != StepKind::kOther || step.op->kind != OpKind::kRope) break;
      if (step.op->output == wanted) return i;
    }
    return npos;
  }

  void add_kv_write(const Op& op) {
    Step step = plain(op);
    step.kind = StepKind::kKvWrite;
    const size_t key = rope_before(op.inputs[0]);
    if (key != npos && read_only_by(op.inputs[0], {&op})) {
      const Op& rope = *steps_[key].op;
      step.key_rope = &rope;
      step.inputs[0] = index(rope.inputs[0]);
      step.key_table = index(rope.inputs[1]);
      steps_.erase(steps_.begin() + static_cast<int64_t>(key));
      fold_query(rope, step);
    }
    steps_.push_back(std::move(step));
  }

  // A RoPE of the same kind and table directly before.
  void fold_query(const Op& key_rope, Step& step) {
    if (steps_.empty() || steps_.back().kind != StepKind::kOther) return;
    const Step& last = steps_.back();
    const Op& rope = *last.op;
    if (rope.kind != OpKind::kRope || rope.inputs[1] != key_rope.inputs[1] ||
        rope.heads.head_dim != key_rope.heads.head_dim ||
        rope.heads.rope_dim != key_rope.heads.rope_dim ||
        rope.heads.rope_pairs != key_rope.heads.rope_pairs) {
      return;
    }
    step.query_rope = &rope;
    step.query = last.inputs[0];
    step.rotated_query = last.output;
    steps_.pop_back();
  }

  // A norm whose only readers are the products of the step behind it.
  void fold_norms() {
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      Step& next = steps_[i + 1];
      if (steps_[i].kind != StepKind::kOther || steps_[i].op->kind != OpKind::kRmsNorm) continue;
      if (next.kind != StepKind::kProducts || next.inputs[0] != steps_[i].output) continue;
      std::vector<const Op*> readers;
      for (const Product& product : next.products) readers.push_back(product.op);
      if (!read_only_by(steps_[i].op->output, readers)) continue;
      next.norm = steps_[i].op;
      next.normed = steps_[i].inputs[0];
      steps_.erase(steps_.begin() + static_cast<int64_t>(i));
    }
  }

  // Pairs that are neighbours lie in one tile of a product.
  bool writes_products(const Step& products, const Step& write) const {
    if (products.kind != StepKind::kProducts || products.products.size() != 3) return false;
    if (write.kind != StepKind::kKvWrite || write.query_rope == nullptr) return false;
    if (write.key_rope->heads.rope_pairs != model::RopePairs::kAdjacent) return false;
    const TensorIndex wanted[] = {write.query, write.inputs[0], write.inputs[1]};
    const Op* const readers[] = {write.query_rope, write.key_rope, write.op};
    for (size_t i = 0; i < 3; ++i) {
      const Product& product = products.products[i];
      if (product.output != wanted[i]) return false;
      if (!read_only_by(product.op->output, {readers[i]})) return false;
    }
    return true;
  }

  void fold_kv_writes() {
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      if (!writes_products(steps_[i], steps_[i + 1])) continue;
      steps_[i].kv_write = std::make_shared<const Step>(std::move(steps_[i + 1]));
      steps_.erase(steps_.begin() + static_cast<int64_t>(i) + 1);
    }
  }

  Step plain(const Op& op) const {
    Step step;
    step.op = &op;
    for (const TensorId input : op.inputs) step.inputs.push_back(index(input));
    step.output = index(op.output);
    step.rows = graph_.tensor(op.output).rows;
    return step;
  }

  void add(const Op& op) {
    if (op.kind == OpKind::kMatMul) return add_product(op);
    if (op.kind == OpKind::kKvWrite) return add_kv_write(op);
    if (op.kind == OpKind::kAdd && fold_residual(op)) return;
    if (op.kind == OpKind::kSiluMul && fold_silu(op)) return;
    steps_.push_back(plain(op));
  }

  static constexpr size_t npos = static_cast<size_t>(-1);
  const Program& program_;
  const graph::Graph& graph_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> make_steps(const Program& program) { return StepMaker(program).run(); }

}  // namespace troika::device::opencl
