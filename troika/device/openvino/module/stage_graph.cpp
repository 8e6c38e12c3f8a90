#include "troika/device/openvino/module/stage_graph.h"

#include <algorithm>
#include <map>
#include <openvino/op/add.hpp>
#include <openvino/op/concat.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/gather.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/power.hpp>
#include <openvino/op/reduce_mean.hpp>
#include <openvino/op/reduce_sum.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/sqrt.hpp>
#include <openvino/op/swish.hpp>
#include <openvino/op/unsqueeze.hpp>

#include "troika/device/openvino/module/weight_inputs.h"

namespace troika::device::openvino {
namespace {

namespace op = ov::op;
using Value = ov::Output<ov::Node>;
using graph::Op;
using graph::OpKind;
using graph::TensorId;

Value integers(const std::vector<int64_t>& values) {
  return op::v0::Constant::create(ov::element::i64, ov::Shape{values.size()}, values);
}

Value floats(const ov::Shape& shape, const std::vector<float>& values) {
  return op::v0::Constant::create(ov::element::f32, shape, values);
}

// 0 takes over the rows of what is reshaped.
Value reshape(const Value& x, std::vector<int64_t> sizes) {
  sizes.insert(sizes.begin(), 0);
  return std::make_shared<op::v1::Reshape>(x, integers(sizes), true);
}

Value multiply(const Value& a, const Value& b) { return std::make_shared<op::v1::Multiply>(a, b); }
Value add(const Value& a, const Value& b) { return std::make_shared<op::v1::Add>(a, b); }

Value product(const Value& x, const Value& w) {
  return std::make_shared<op::v0::MatMul>(x, w, false, true);
}

Value rms_norm(const Value& x, const Value& weight, float eps) {
  const Value square = std::make_shared<op::v1::Power>(x, floats({}, {2}));
  const Value mean = std::make_shared<op::v1::ReduceMean>(square, integers({-1}), true);
  const Value root = std::make_shared<op::v0::Sqrt>(add(mean, floats({}, {eps})));
  const Value inverse = std::make_shared<op::v1::Divide>(floats({}, {1}), root);
  return multiply(multiply(x, inverse), weight);
}

Value gather_last(const Value& x, const std::vector<int64_t>& indices) {
  return std::make_shared<op::v8::Gather>(x, integers(indices), integers({-1}));
}

// Of a head's first rope_dim elements: which is turned together with each, where the table of
// (cos, sin) pairs has its angle, and the sign of the sine.
struct RopeOrder {
  std::vector<int64_t> partner;
  std::vector<int64_t> cos;
  std::vector<int64_t> sin;
  std::vector<float> sign;
};

RopeOrder rope_order(const graph::HeadShape& heads) {
  RopeOrder order;
  const int64_t half = heads.rope_dim / 2;
  const bool adjacent = heads.rope_pairs == model::RopePairs::kAdjacent;
  for (int64_t i = 0; i < heads.rope_dim; ++i) {
    const int64_t pair = adjacent ? i / 2 : i % half;
    const bool first = adjacent ? i % 2 == 0 : i < half;
    const int64_t step = adjacent ? 1 : half;
    order.partner.push_back(first ? i + step : i - step);
    order.cos.push_back(2 * pair);
    order.sin.push_back(2 * pair + 1);
    order.sign.push_back(first ? -1.0f : 1.0f);
  }
  return order;
}

Value slice_last(const Value& x, int64_t begin, int64_t end) {
  return std::make_shared<op::v8::Slice>(x, integers({begin}), integers({end}), integers({1}),
                                         integers({-1}));
}

// x * cos + partner * (+-sin), for every head of a row.
Value rope(const Value& x, const Value& table, const graph::HeadShape& heads) {
  const RopeOrder order = rope_order(heads);
  const Value split = reshape(x, {heads.n_heads, heads.head_dim});
  const bool whole = heads.rope_dim == heads.head_dim;
  const Value turned = whole ? split : slice_last(split, 0, heads.rope_dim);
  const Value axis = integers({1});
  const Value cos = std::make_shared<op::v0::Unsqueeze>(gather_last(table, order.cos), axis);
  const Value sin = std::make_shared<op::v0::Unsqueeze>(
      multiply(gather_last(table, order.sin), floats({order.sign.size()}, order.sign)), axis);
  Value out = add(multiply(turned, cos), multiply(gather_last(turned, order.partner), sin));
  if (!whole) {
    const Value rest = slice_last(split, heads.rope_dim, heads.head_dim);
    out = std::make_shared<op::v0::Concat>(ov::OutputVector{out, rest}, -1);
  }
  return reshape(out, {heads.n_heads * heads.head_dim});
}

class Builder {
 public:
  Builder(const Program& program, const Segment& segment, const GraphForm& form,
          WeightStore& weights)
      : program_(program),
        graph_(*program.graph),
        segment_(segment),
        form_(form),
        weights_(weights) {}

  Result<std::shared_ptr<ov::Model>> build() {
    for (const graph::OpId id : segment_.ops) {
      const Op& op = graph_.op(id);
      if (op.kind == OpKind::kMatMul) RETURN_IF_ERROR(check_slice(graph::weight_slice(graph_, op)));
    }
    ov::ParameterVector parameters;
    for (const size_t input : segment_.inputs) {
      const TensorId id = program_.tensors[input];
      const ov::PartialShape shape{form_.rows, graph_.tensor(id).width};
      parameters.push_back(std::make_shared<op::v0::Parameter>(ov::element::f32, shape));
      values_[id] = parameters.back();
    }
    if (form_.weight_inputs) add_weight_inputs(parameters);
    ov::ResultVector results;
    if (segment_.one_product) {
      results.push_back(std::make_shared<op::v0::Result>(all_products(parameters.front())));
      return std::make_shared<ov::Model>(results, parameters);
    }
    for (const graph::OpId id : segment_.ops)
      values_[graph_.op(id).output] = value_of(graph_.op(id));
    for (const size_t output : segment_.outputs) {
      const Value value = values_.at(program_.tensors[output]);
      results.push_back(std::make_shared<op::v0::Result>(value));
    }
    return std::make_shared<ov::Model>(results, parameters);
  }

 private:
  Value input(const Op& op, size_t index) const { return values_.at(op.inputs[index]); }

  void add_weight_inputs(ov::ParameterVector& parameters) {
    for (const WeightInput& weight : weight_inputs(program_, segment_)) {
      const ov::element::Type type = weight.tensor.get_element_type();
      parameters.push_back(
          std::make_shared<op::v0::Parameter>(type, ov::PartialShape(weight.tensor.get_shape())));
      Value& value = given_[&graph_.op(weight.op)];
      value = parameters.back();
      if (type != ov::element::f32) {
        value = std::make_shared<op::v0::Convert>(value, ov::element::f32);
      }
    }
  }

  // Products of one input, side by side. They have one type and the same inputs, so that all of
  // their weights are inputs or none.
  Value all_products(const Value& x) {
    if (given_.empty()) {
      const auto weight = weights_.prepare(slices_of(graph_, segment_), form_.weights);
      return product(x, weight_node(weight));
    }
    ov::OutputVector products;
    for (const graph::OpId id : segment_.ops) {
      products.push_back(product(x, given_.at(&graph_.op(id))));
    }
    if (products.size() == 1) return products.front();
    return std::make_shared<op::v0::Concat>(products, -1);
  }

  Value norm_weight(const Op& op) const {
    const auto given = given_.find(&op);
    return given == given_.end() ? vector_node(*op.weight) : given->second;
  }

  Value value_of(const Op& op) {
    switch (op.kind) {
      case OpKind::kRmsNorm:
        return rms_norm(input(op, 0), norm_weight(op), op.eps);
      case OpKind::kMatMul:
        return mat_mul(op);
      case OpKind::kRope:
        return rope(input(op, 0), input(op, 1), op.heads);
      case OpKind::kSiluMul:
        return multiply(std::make_shared<op::v4::Swish>(input(op, 0)), input(op, 1));
      case OpKind::kAdd: {
        Value sum = add(input(op, 0), input(op, 1));
        for (size_t i = 2; i < op.inputs.size(); ++i) sum = add(sum, input(op, i));
        return sum;
      }
      case OpKind::kConcat: {
        ov::OutputVector parts;
        for (size_t i = 0; i < op.inputs.size(); ++i) parts.push_back(input(op, i));
        return std::make_shared<op::v0::Concat>(parts, 1);
      }
      case OpKind::kEmbed:
      case OpKind::kRopeTable:
      case OpKind::kKvWrite:
      case OpKind::kAttention:
      case OpKind::kGatherRows:
        break;  // no part of a graph segment
    }
    return {};
  }

  Value mat_mul(const Op& op) {
    if (const auto given = given_.find(&op); given != given_.end()) {
      return product(input(op, 0), given->second);
    }
    const graph::WeightSlice slice = graph::weight_slice(graph_, op);
    const auto weight = weights_.prepare({&slice, 1}, form_.weights);
    const Value x = input(op, 0);
    const Value out = product(x, weight_node(weight));
    if (!weight->offsets) return out;
    return add(out, product(block_sums(op.inputs[0], x, weight->k), offset_node(weight)));
  }

  // Products that read the same tensor share the sums.
  Value block_sums(TensorId id, const Value& x, int64_t k) {
    const auto found = block_sums_.find(id);
    if (found != block_sums_.end()) return found->second;
    const Value sums = std::make_shared<op::v1::ReduceSum>(
        reshape(x, {k / kWeightBlock, kWeightBlock}), integers({-1}), false);
    return block_sums_.emplace(id, sums).first->second;
  }

  const Program& program_;
  const graph::Graph& graph_;
  const Segment& segment_;
  const GraphForm& form_;
  WeightStore& weights_;
  std::map<TensorId, Value> values_;
  std::map<const Op*, Value> given_;  // weights that are inputs
  std::map<TensorId, Value> block_sums_;
};

}  // namespace

std::vector<graph::WeightSlice> slices_of(const graph::Graph& graph, const Segment& segment) {
  std::vector<graph::WeightSlice> slices;
  for (const graph::OpId id : segment.ops) slices.push_back(weight_slice(graph, graph.op(id)));
  return slices;
}

Result<std::shared_ptr<ov::Model>> build_graph(const Program& program, const Segment& segment,
                                               const GraphForm& form, WeightStore& weights) {
  return Builder(program, segment, form, weights).build();
}

GraphBytes graph_bytes(const Program& program, const Segment& segment, const GraphForm& form) {
  const graph::Graph& graph = *program.graph;
  GraphBytes bytes;
  for (const graph::OpId id : segment.ops) {
    const Op& op = graph.op(id);
    bytes.between += form.rows * graph.tensor(op.output).width * int64_t{sizeof(float)};
    if (op.kind != OpKind::kMatMul) continue;
    const graph::WeightSlice slice = graph::weight_slice(graph, op);
    if (!form.weight_inputs || !can_be_input(graph, op)) {
      bytes.weights += prepared_bytes(slice, form.weights);
    } else if (op.weight->type != model::TensorType::kF32) {  // converted in every run
      bytes.between += slice.n * slice.k * int64_t{sizeof(float)};
    }
  }
  return bytes;
}

std::string describe_graph(const Program& program, const Segment& segment, const GraphForm& form,
                           const std::function<std::string(const model::Weight&)>& weight_name) {
  const graph::Graph& graph = *program.graph;
  // Tensors are numbered in the order in which they occur: the same in every layer.
  std::map<TensorId, size_t> numbers;
  const auto number = [&](TensorId id) {
    const size_t n = numbers.emplace(id, numbers.size()).first->second;
    return fmt::format(" {}:{}", n, graph.tensor(id).width);
  };
  std::string text =
      fmt::format("rows {}; weights {}{}\nin", form.rows, static_cast<int>(form.weights),
                  segment.one_product ? "; one product" : "");
  for (const size_t input : segment.inputs) text += number(program.tensors[input]);
  for (const graph::OpId id : segment.ops) {
    const Op& op = graph.op(id);
    text += fmt::format("\n{}", to_string(op.kind));
    for (const TensorId input : op.inputs) text += number(input);
    text += fmt::format(" ->{}", number(op.output));
    if (op.weight != nullptr && form.weight_inputs && can_be_input(graph, op)) {
      text += fmt::format(" given, type {}", static_cast<int>(op.weight->type));
    } else if (op.weight != nullptr) {
      text += fmt::format(" {} type {} [{}, {}] from {}, {}", weight_name(*op.weight),
                          static_cast<int>(op.weight->type), op.weight->rows, op.weight->cols,
                          op.n_begin, op.k_begin);
    }
    if (op.kind == OpKind::kRmsNorm) text += fmt::format(" eps {}", op.eps);
    if (op.kind == OpKind::kRope) {
      text += fmt::format(" heads {} {} {} {}", op.heads.n_heads, op.heads.head_dim,
                          op.heads.rope_dim, static_cast<int>(op.heads.rope_pairs));
    }
  }
  text += "\nout";
  for (const size_t output : segment.outputs) text += number(program.tensors[output]);
  return text;
}

}  // namespace troika::device::openvino
