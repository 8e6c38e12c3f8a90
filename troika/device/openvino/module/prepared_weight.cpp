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

using Slices = std::span<const graph::WeightSlice>;

// Calls body(stored bytes) for each output of each slice in turn.
template <class Body>
void for_each_output(Slices slices, const Body& body) {
  for (const graph::WeightSlice& slice : slices) {
    for (int64_t n = 0; n < slice.n; ++n) body(graph::row_of(slice, n));
  }
}

// Of a stored block of Q4_1: what all its weights are more than their levels times the scale.
float offset_at(const std::byte* stored) {
  return model::f16_at(stored + 2) + kCentre * model::f16_at(stored);
}

void prepare_blocks(Slices slices, bool with_offsets, PreparedWeight& weight) {
  const TensorType type = slices.front().weight->type;
  const bool nibbles = has_nibbles(type);
  const int64_t blocks = weight.k / kWeightBlock;
  const int64_t stored_bytes = model::traits(type).block_bytes;
  const int64_t level_bytes = nibbles ? kWeightBlock / 2 : kWeightBlock;
  const int64_t scale_bytes = weight.n * blocks * int64_t{sizeof(float)};
  weight.type = nibbles ? ValueType::kInt4 : ValueType::kInt8;
  weight.values = allocate(weight, weight.n * blocks * level_bytes);
  weight.scales = allocate(weight, scale_bytes);
  if (type == TensorType::kQ4_1 && with_offsets) weight.offsets = allocate(weight, scale_bytes);
  std::byte* levels = weight.values.get();
  int64_t b = 0;
  for_each_output(slices, [&](const std::byte* stored) {
    for (int64_t i = 0; i < blocks; ++i, ++b) {
      floats(weight.scales)[b] = model::f16_at(stored);
      if (weight.offsets) floats(weight.offsets)[b] = offset_at(stored);
      stored += stored_bytes;
      if (nibbles) {
        pack_nibbles(stored - level_bytes, levels);
      } else {
        std::memcpy(levels, stored - level_bytes, static_cast<size_t>(level_bytes));
      }
      levels += level_bytes;
    }
  });
}

void prepare_floats(Slices slices, PreparedWeight& weight) {
  weight.type = ValueType::kFloat;
  weight.values = allocate(weight, weight.n * weight.k * int64_t{sizeof(float)});
  float* row = floats(weight.values);
  for_each_output(slices, [&](const std::byte* stored) {
    model::dequantize_row(slices.front().weight->type, stored,
                          {row, static_cast<size_t>(weight.k)});
    row += weight.k;
  });
}

void prepare_halves(Slices slices, PreparedWeight& weight) {
  weight.type = ValueType::kHalf;
  weight.values = allocate(weight, weight.n * weight.k * int64_t{sizeof(uint16_t)});
  auto* halves = reinterpret_cast<uint16_t*>(weight.values.get());
  std::vector<float> row(static_cast<size_t>(weight.k));
  for_each_output(slices, [&](const std::byte* stored) {
    model::dequantize_row(slices.front().weight->type, stored, row);
    halves = std::transform(row.begin(), row.end(), halves, model::f32_to_f16);
  });
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
  const bool offsets = type == TensorType::kQ4_1 && form == WeightForm::kBlocks;
  return weights / 2 + (offsets ? 2 : 1) * scale_bytes;
}

std::vector<float> block_offsets(Slices slices) {
  if (slices.front().weight->type != TensorType::kQ4_1) return {};
  int64_t n = 0;
  for (const graph::WeightSlice& slice : slices) n += slice.n;
  const int64_t blocks = slices.front().k / kWeightBlock;
  const int64_t stored_bytes = model::traits(TensorType::kQ4_1).block_bytes;
  std::vector<float> offsets(static_cast<size_t>(n * blocks));
  int64_t output = 0;
  for_each_output(slices, [&](const std::byte* stored) {
    for (int64_t i = 0; i < blocks; ++i) {
      offsets[static_cast<size_t>(i * n + output)] = offset_at(stored + i * stored_bytes);
    }
    ++output;
  });
  return offsets;
}

std::shared_ptr<const PreparedWeight> WeightStore::prepare(Slices slices, WeightForm form) {
  const Key key{{slices.begin(), slices.end()}, form};
  if (auto weight = weights_.find(key)) return weight;
  auto weight = std::make_shared<PreparedWeight>();
  for (const graph::WeightSlice& slice : slices) weight->n += slice.n;
  weight->k = slices.front().k;
  if (form == WeightForm::kHalf) {
    prepare_halves(slices, *weight);
  } else if (model::traits(slices.front().weight->type).block_weights == kWeightBlock) {
    prepare_blocks(slices, form == WeightForm::kBlocks, *weight);
  } else {
    prepare_floats(slices, *weight);
  }
  weights_.keep(key, weight);
  return weight;
}

int64_t WeightStore::bytes() const {
  return weights_.total([](const PreparedWeight& weight) { return weight.bytes; });
}

}  // namespace troika::device::openvino
