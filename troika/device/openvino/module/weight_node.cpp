#include "troika/device/openvino/module/weight_node.h"

#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/reshape.hpp>
#include <vector>

namespace troika::device::openvino {
namespace {

using ov::op::v0::Constant;

ov::element::Type element_type(ValueType type) {
  switch (type) {
    case ValueType::kInt4:
      return ov::element::i4;
    case ValueType::kInt8:
      return ov::element::i8;
    case ValueType::kHalf:
      return ov::element::f16;
    case ValueType::kFloat:
      return ov::element::f32;
  }
  return {};
}

// Over the weight's own memory, which lives as long as the node or what was compiled from it.
ov::Output<ov::Node> constant(const std::shared_ptr<const PreparedWeight>& weight,
                              const AlignedBytes& bytes, ov::element::Type type,
                              std::initializer_list<int64_t> sizes) {
  ov::Shape shape;
  for (const int64_t size : sizes) shape.push_back(static_cast<size_t>(size));
  return std::make_shared<Constant>(type, shape, bytes.get(),
                                    std::const_pointer_cast<PreparedWeight>(weight));
}

}  // namespace

ov::Output<ov::Node> weight_node(const std::shared_ptr<const PreparedWeight>& weight) {
  const ov::element::Type type = element_type(weight->type);
  if (!weight->scales) {
    const auto values = constant(weight, weight->values, type, {weight->n, weight->k});
    if (weight->type == ValueType::kFloat) return values;
    return std::make_shared<ov::op::v0::Convert>(values, ov::element::f32);
  }
  const int64_t blocks = weight->k / kWeightBlock;
  const auto levels = constant(weight, weight->values, type, {weight->n, blocks, kWeightBlock});
  const auto scales =
      constant(weight, weight->scales, ov::element::f32, {weight->n, blocks, int64_t{1}});
  const auto values = std::make_shared<ov::op::v1::Multiply>(
      std::make_shared<ov::op::v0::Convert>(levels, ov::element::f32), scales);
  const std::vector<int64_t> flat = {weight->n, weight->k};
  return std::make_shared<ov::op::v1::Reshape>(
      values, Constant::create(ov::element::i64, ov::Shape{2}, flat), false);
}

ov::Output<ov::Node> offset_node(const std::shared_ptr<const PreparedWeight>& weight) {
  return constant(weight, weight->offsets, ov::element::f32, {weight->n, weight->k / kWeightBlock});
}

ov::Output<ov::Node> vector_node(const model::Weight& weight) {
  return std::make_shared<Constant>(ov::element::f32, ov::Shape{static_cast<size_t>(weight.cols)},
                                    weight.data);
}

}  // namespace troika::device::openvino
