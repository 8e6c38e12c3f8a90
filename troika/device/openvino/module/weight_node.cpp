#include "troika/device/openvino/module/weight_node.h"

#include <algorithm>
#include <cstring>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/multiply.hpp>
#include <openvino/op/reshape.hpp>
#include <vector>

#include "troika/model/quantize.h"

namespace troika::device::openvino {
namespace {

using model::TensorType;

constexpr int64_t kBlock = 32;
// Levels of 4 bits are held less this: what Q4_0 means, and of Q4_1 the middle, so that sums stay
// small.
constexpr float kCentre = 8;
constexpr uint8_t kCentreBits = 0x88;  // both levels of a byte, as two's complement

bool has_blocks(TensorType type) { return model::traits(type).block_weights > 1; }

bool has_nibbles(TensorType type) { return type == TensorType::kQ4_0 || type == TensorType::kQ4_1; }

bool has_offsets(TensorType type) { return type == TensorType::kQ4_1; }

float half_at(const std::byte* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return model::f16_to_f32(bits);
}

// The stored bytes of the slice's part of one output.
const std::byte* row_of(const WeightSlice& slice, int64_t n) {
  const model::Weight& weight = *slice.weight;
  return weight.data + (slice.n_begin + n) * weight.row_bytes() +
         model::row_bytes(weight.type, slice.k_begin);
}

ov::Shape shape(std::initializer_list<int64_t> sizes) {
  ov::Shape shape;
  for (const int64_t size : sizes) shape.push_back(static_cast<size_t>(size));
  return shape;
}

std::shared_ptr<ov::op::v0::Constant> constant(ov::element::Type type, const ov::Shape& shape) {
  return std::make_shared<ov::op::v0::Constant>(ov::Tensor(type, shape));
}

template <class T>
T* data_of(ov::op::v0::Constant& node) {
  return static_cast<T*>(const_cast<void*>(node.get_data_ptr()));
}

// GGUF keeps weights i and i + 16 of a block in one byte; OpenVINO's i4 weights 2 i and 2 i + 1.
void pack_nibbles(const std::byte* from, uint8_t* to) {
  uint8_t levels[kBlock];
  for (int64_t i = 0; i < kBlock / 2; ++i) {
    const auto both = std::to_integer<uint8_t>(from[i]);
    levels[i] = both & 15;
    levels[i + kBlock / 2] = both >> 4;
  }
  for (int64_t i = 0; i < kBlock / 2; ++i) {
    to[i] = static_cast<uint8_t>((levels[2 * i] | levels[2 * i + 1] << 4) ^ kCentreBits);
  }
}

// scale * level, with a scale for each block of 32 along K.
ov::Output<ov::Node> block_node(const WeightSlice& slice) {
  const TensorType type = slice.weight->type;
  const int64_t blocks = slice.k / kBlock;
  const int64_t block_bytes = model::traits(type).block_bytes;
  const bool nibbles = has_nibbles(type);
  const int64_t level_bytes = nibbles ? kBlock / 2 : kBlock;
  const auto levels =
      constant(nibbles ? ov::element::i4 : ov::element::i8, shape({slice.n, blocks, kBlock}));
  const auto scales = constant(ov::element::f32, shape({slice.n, blocks, 1}));
  auto* level = data_of<uint8_t>(*levels);
  auto* scale = data_of<float>(*scales);
  for (int64_t n = 0; n < slice.n; ++n) {
    const std::byte* block = row_of(slice, n);
    for (int64_t b = 0; b < blocks; ++b, block += block_bytes, level += level_bytes) {
      *scale++ = half_at(block);
      const std::byte* const stored = block + block_bytes - level_bytes;
      if (nibbles) {
        pack_nibbles(stored, level);
      } else {
        std::memcpy(level, stored, static_cast<size_t>(level_bytes));
      }
    }
  }
  const auto values = std::make_shared<ov::op::v1::Multiply>(
      std::make_shared<ov::op::v0::Convert>(levels, ov::element::f32), scales);
  const std::vector<int64_t> flat = {slice.n, slice.k};
  return std::make_shared<ov::op::v1::Reshape>(
      values, ov::op::v0::Constant::create(ov::element::i64, ov::Shape{2}, flat), false);
}

}  // namespace

Status check_slice(const WeightSlice& slice) {
  const model::Weight& weight = *slice.weight;
  if (slice.n_begin < 0 || slice.k_begin < 0 || slice.n < 1 || slice.k < 1 ||
      slice.n > weight.rows - slice.n_begin || slice.k > weight.cols - slice.k_begin) {
    return make_error(ErrorCode::kInvalidArgument,
                      "outputs {}+{} and inputs {}+{} are not all in {} [{}, {}]", slice.n_begin,
                      slice.n, slice.k_begin, slice.k, weight.name, weight.rows, weight.cols);
  }
  const int64_t block = model::traits(weight.type).block_weights;
  if (slice.k_begin % block != 0 || slice.k % block != 0) {
    return make_error(ErrorCode::kUnsupported, "inputs {}+{} of {} cut a block of {} weights",
                      slice.k_begin, slice.k, weight.name, block);
  }
  return {};
}

int64_t offset_block(const WeightSlice& slice, WeightForm form) {
  return form == WeightForm::kBlocks && has_offsets(slice.weight->type) ? kBlock : 0;
}

ov::Output<ov::Node> weight_node(const WeightSlice& slice, WeightForm form) {
  if (form == WeightForm::kBlocks && has_blocks(slice.weight->type)) return block_node(slice);
  const bool half = form == WeightForm::kHalf;
  const auto values =
      constant(half ? ov::element::f16 : ov::element::f32, shape({slice.n, slice.k}));
  std::vector<float> row(static_cast<size_t>(slice.k));
  for (int64_t n = 0; n < slice.n; ++n) {
    if (!half) {
      float* const to = data_of<float>(*values) + n * slice.k;
      model::dequantize_row(slice.weight->type, row_of(slice, n), {to, row.size()});
      continue;
    }
    model::dequantize_row(slice.weight->type, row_of(slice, n), row);
    uint16_t* const to = data_of<uint16_t>(*values) + n * slice.k;
    std::transform(row.begin(), row.end(), to, model::f32_to_f16);
  }
  if (!half) return values;
  return std::make_shared<ov::op::v0::Convert>(values, ov::element::f32);
}

ov::Output<ov::Node> offset_node(const WeightSlice& slice) {
  const int64_t blocks = slice.k / kBlock;
  const int64_t block_bytes = model::traits(slice.weight->type).block_bytes;
  const auto offsets = constant(ov::element::f32, shape({slice.n, blocks}));
  auto* to = data_of<float>(*offsets);
  for (int64_t n = 0; n < slice.n; ++n) {
    const std::byte* block = row_of(slice, n);
    for (int64_t b = 0; b < blocks; ++b, block += block_bytes) {
      *to++ = half_at(block + 2) + kCentre * half_at(block);
    }
  }
  return offsets;
}

ov::Output<ov::Node> vector_node(const model::Weight& weight) {
  const auto values = constant(ov::element::f32, shape({weight.cols}));
  std::memcpy(data_of<float>(*values), weight.data, static_cast<size_t>(weight.bytes()));
  return values;
}

int64_t weight_node_bytes(const WeightSlice& slice, WeightForm form) {
  const int64_t weights = slice.n * slice.k;
  if (form == WeightForm::kHalf) return 2 * weights;
  const int64_t scales = weights / kBlock * int64_t{sizeof(float)};
  const TensorType type = slice.weight->type;
  if (has_nibbles(type)) return weights / 2 + (has_offsets(type) ? 2 : 1) * scales;
  return has_blocks(type) ? weights + scales : 4 * weights;
}

}  // namespace troika::device::openvino
