#include "troika/device/openvino/module/prepared_weight.h"

#include <algorithm>
#include <cstring>

#include "troika/model/quantize.h"

namespace troika::device::openvino {
namespace {

using model::TensorType;

// Levels of 4 bits are held less this: what Q4_0 means, and of Q4_1 the middle, so that sums stay
// small.
constexpr float kCentre = 8;
constexpr uint8_t kCentreBits = 0x88;  // both levels of a byte, as two's complement

bool has_nibbles(TensorType type) { return type == TensorType::kQ4_0 || type == TensorType::kQ4_1; }

float half_at(const std::byte* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return model::f16_to_f32(bits);
}

// The stored bytes of the slice's part of one output.
const std::byte* row_of(const graph::WeightSlice& slice, int64_t n) {
  const model::Weight& weight = *slice.weight;
  return weight.data + (slice.n_begin + n) * weight.row_bytes() +
         model::row_bytes(weight.type, slice.k_begin);
}

AlignedBytes allocate(PreparedWeight& weight, int64_t bytes) {
  weight.bytes += bytes;
  return AlignedBytes(static_cast<std::byte*>(
      ::operator new[](static_cast<size_t>(bytes), AlignedDelete::kAlignment)));
}

float* floats(const AlignedBytes& bytes) { return reinterpret_cast<float*>(bytes.get()); }

// GGUF keeps weights i and i + 16 of a block in one byte, OpenVINO 2 i and 2 i + 1.
void pack_nibbles(const std::byte* from, std::byte* to) {
  uint8_t levels[kWeightBlock];
  for (int64_t i = 0; i < kWeightBlock / 2; ++i) {
    const auto both = std::to_integer<uint8_t>(from[i]);
    levels[i] = both & 15;
    levels[i + kWeightBlock / 2] = both >> 4;
  }
  for (int64_t i = 0; i < kWeightBlock / 2; ++i) {
    to[i] = static_cast<std::byte>((levels[2 * i] | levels[2 * i + 1] << 4) ^ kCentreBits);
  }
}

void prepare_blocks(const graph::WeightSlice& slice, PreparedWeight& weight) {
  const TensorType type = slice.weight->type;
  const bool nibbles = has_nibbles(type);
  const int64_t blocks = slice.k / kWeightBlock;
  const int64_t stored_bytes = model::traits(type).block_bytes;
  const int64_t level_bytes = nibbles ? kWeightBlock / 2 : kWeightBlock;
  const int64_t scale_bytes = slice.n * blocks * int64_t{sizeof(float)};
  weight.type = nibbles ? ValueType::kInt4 : ValueType::kInt8;
  weight.values = allocate(weight, slice.n * blocks * level_bytes);
  weight.scales = allocate(weight, scale_bytes);
  if (type == TensorType::kQ4_1) weight.offsets = allocate(weight, scale_bytes);
  std::byte* levels = weight.values.get();
  for (int64_t n = 0; n < slice.n; ++n) {
    const std::byte* stored = row_of(slice, n);
    for (int64_t b = n * blocks; b < (n + 1) * blocks; ++b) {
      const float scale = half_at(stored);
      floats(weight.scales)[b] = scale;
      if (weight.offsets) floats(weight.offsets)[b] = half_at(stored + 2) + kCentre * scale;
      stored += stored_bytes;
      if (nibbles) {
        pack_nibbles(stored - level_bytes, levels);
      } else {
        std::memcpy(levels, stored - level_bytes, static_cast<size_t>(level_bytes));
      }
      levels += level_bytes;
    }
  }
}

void prepare_floats(const graph::WeightSlice& slice, PreparedWeight& weight) {
  weight.type = ValueType::kFloat;
  weight.values = allocate(weight, slice.n * slice.k * int64_t{sizeof(float)});
  for (int64_t n = 0; n < slice.n; ++n) {
    model::dequantize_row(slice.weight->type, row_of(slice, n),
                          {floats(weight.values) + n * slice.k, static_cast<size_t>(slice.k)});
  }
}

void prepare_halves(const graph::WeightSlice& slice, PreparedWeight& weight) {
  weight.type = ValueType::kHalf;
  weight.values = allocate(weight, slice.n * slice.k * int64_t{sizeof(uint16_t)});
  auto* const halves = reinterpret_cast<uint16_t*>(weight.values.get());
  std::vector<float> row(static_cast<size_t>(slice.k));
  for (int64_t n = 0; n < slice.n; ++n) {
    model::dequantize_row(slice.weight->type, row_of(slice, n), row);
    std::transform(row.begin(), row.end(), halves + n * slice.k, model::f32_to_f16);
  }
}

}  // namespace

Status check_slice(const graph::WeightSlice& slice) {
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

int64_t prepared_bytes(const graph::WeightSlice& slice, WeightForm form) {
  const TensorType type = slice.weight->type;
  const int64_t weights = slice.n * slice.k;
  if (form == WeightForm::kHalf) return 2 * weights;
  if (model::traits(type).block_weights != kWeightBlock) return 4 * weights;
  const int64_t scale_bytes = weights / kWeightBlock * int64_t{sizeof(float)};
  if (!has_nibbles(type)) return weights + scale_bytes;
  return weights / 2 + (type == TensorType::kQ4_1 ? 2 : 1) * scale_bytes;
}

std::shared_ptr<const PreparedWeight> WeightStore::prepare(const graph::WeightSlice& slice,
                                                           WeightForm form) {
  std::erase_if(weights_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const PreparedWeight>& held = weights_[{slice, form}];
  if (auto weight = held.lock()) return weight;
  auto weight = std::make_shared<PreparedWeight>();
  weight->n = slice.n;
  weight->k = slice.k;
  if (form == WeightForm::kHalf) {
    prepare_halves(slice, *weight);
  } else if (model::traits(slice.weight->type).block_weights == kWeightBlock) {
    prepare_blocks(slice, *weight);
  } else {
    prepare_floats(slice, *weight);
  }
  held = weight;
  return weight;
}

int64_t WeightStore::bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, weak] : weights_) {
    if (const auto weight = weak.lock()) bytes += weight->bytes;
  }
  return bytes;
}

}  // namespace troika::device::openvino
