#include "troika/device/openvino/module/prepared_weight.h"

#include <gtest/gtest.h>

#include <cstring>

#include "troika/model/quantize.h"
#include "troika/model/random_weights.h"

namespace troika::device::openvino {
namespace {

using graph::WeightSlice;
using model::TensorType;

struct Stored {
  Stored(TensorType type, int64_t rows, int64_t cols) {
    weight.name = std::string("w");
    weight.type = type;
    weight.rows = rows;
    weight.cols = cols;
    bytes.resize(static_cast<size_t>(weight.bytes()));
    model::RandomWeights(5, "w").fill(type, 1.0f, bytes);
    weight.data = bytes.data();
  }
  model::Weight weight;
  std::vector<std::byte> bytes;
};

float at(const AlignedBytes& bytes, int64_t i) {
  float value = 0;
  std::memcpy(&value, bytes.get() + 4 * i, sizeof(value));
  return value;
}

// Weight i of a prepared one, by its definition.
float value_at(const PreparedWeight& weight, int64_t i) {
  float value = 0;
  switch (weight.type) {
    case ValueType::kInt4: {
      const auto byte = std::to_integer<int>(weight.values[static_cast<size_t>(i / 2)]);
      const int level = i % 2 == 0 ? byte & 15 : byte >> 4;
      value = static_cast<float>(level < 8 ? level : level - 16);
      break;
    }
    case ValueType::kInt8:
      value = std::to_integer<int8_t>(weight.values[static_cast<size_t>(i)]);
      break;
    case ValueType::kHalf: {
      uint16_t half = 0;
      std::memcpy(&half, weight.values.get() + 2 * i, sizeof(half));
      value = model::f16_to_f32(half);
      break;
    }
    case ValueType::kFloat:
      value = at(weight.values, i);
      break;
  }
  if (weight.scales) value *= at(weight.scales, i / kWeightBlock);
  if (weight.offsets) value += at(weight.offsets, i / kWeightBlock);
  return value;
}

TEST(PreparedWeight, MeansWhatWasStored) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1}) {
    SCOPED_TRACE(model::traits(type).name);
    const Stored stored(type, 7, 160);
    const WeightSlice slice{&stored.weight, 2, 4, 64, 96};
    ASSERT_TRUE(check_slice(slice).has_value());
    for (const WeightForm form : {WeightForm::kBlocks, WeightForm::kHalf}) {
      WeightStore store;
      const auto weight = store.prepare({&slice, 1}, form);
      EXPECT_EQ(weight->bytes, prepared_bytes(slice, form));
      EXPECT_EQ(store.bytes(), weight->bytes);
      std::vector<float> row(160);
      for (int64_t n = 0; n < 4; ++n) {
        model::dequantize_row(type, stored.bytes.data() + (n + 2) * stored.weight.row_bytes(), row);
        for (int64_t k = 0; k < 96; ++k) {
          const float expected = row[static_cast<size_t>(k + 64)];
          const float tolerance =
              (form == WeightForm::kHalf ? 6e-4f : 1e-6f) * (1 + std::abs(expected));
          ASSERT_NEAR(value_at(*weight, n * 96 + k), expected, tolerance) << n << ", " << k;
        }
      }
    }
  }
}

TEST(PreparedWeight, TakesNoPartOfABlockAndNothingOutside) {
  const Stored blocks(TensorType::kQ4_0, 8, 128);
  const Stored plain(TensorType::kF16, 8, 50);
  const auto code = [](const WeightSlice& slice) {
    const Status status = check_slice(slice);
    return status ? ErrorCode::kInternal : status.error().code;
  };
  EXPECT_TRUE(check_slice({&plain.weight, 0, 8, 7, 11}).has_value());
  EXPECT_EQ(code({&blocks.weight, 0, 8, 16, 32}), ErrorCode::kUnsupported);
  EXPECT_EQ(code({&blocks.weight, 0, 8, 32, 40}), ErrorCode::kUnsupported);
  EXPECT_EQ(code({&blocks.weight, 5, 4, 0, 32}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({&blocks.weight, 0, 8, 96, 64}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({&blocks.weight, -1, 4, 0, 32}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({&blocks.weight, 0, 0, 0, 32}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({&blocks.weight, INT64_MAX, 8, 0, 32}), ErrorCode::kInvalidArgument);
}

// Slices side by side are what each is alone; levels and block offsets are the whole weight.
TEST(PreparedWeight, SlicesSideBySide) {
  for (const TensorType type :
       {TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1}) {
    SCOPED_TRACE(model::traits(type).name);
    const Stored a(type, 5, 96);
    const Stored b(type, 4, 96);
    const std::vector<WeightSlice> slices = {{&a.weight, 1, 3, 32, 64}, {&b.weight, 0, 4, 32, 64}};
    WeightStore store;
    const auto levels = store.prepare(slices, WeightForm::kLevels);
    EXPECT_EQ(levels->bytes, prepared_bytes(slices[0], WeightForm::kLevels) +
                                 prepared_bytes(slices[1], WeightForm::kLevels));
    const std::vector<float> offsets = block_offsets(slices);
    ASSERT_EQ(levels->n, 7);
    ASSERT_EQ(offsets.size(), type == TensorType::kQ4_1 ? 14u : 0u);
    for (int64_t n = 0; n < levels->n; ++n) {
      const bool first = n < 3;
      const auto alone = store.prepare({&slices[first ? 0 : 1], 1}, WeightForm::kBlocks);
      for (int64_t k = 0; k < 64; ++k) {
        float value = value_at(*levels, n * 64 + k);
        if (!offsets.empty()) value += offsets[static_cast<size_t>(k / kWeightBlock * 7 + n)];
        const float expected = value_at(*alone, (first ? n : n - 3) * 64 + k);
        ASSERT_NEAR(value, expected, 1e-6f * (1 + std::abs(expected))) << n << ", " << k;
      }
    }
  }
}

TEST(WeightStore, PreparesASliceOnce) {
  const Stored stored(TensorType::kQ4_1, 8, 64);
  WeightStore store;
  const WeightSlice slice{&stored.weight, 0, 8, 0, 64};
  const WeightSlice smaller{&stored.weight, 0, 4, 0, 64};
  auto first = store.prepare({&slice, 1}, WeightForm::kBlocks);
  EXPECT_EQ(store.prepare({&slice, 1}, WeightForm::kBlocks), first);
  EXPECT_NE(store.prepare({&smaller, 1}, WeightForm::kBlocks), first);
  EXPECT_NE(store.prepare({&slice, 1}, WeightForm::kHalf), first);
  EXPECT_EQ(store.bytes(), first->bytes);  // the others are gone
  first.reset();
  EXPECT_EQ(store.bytes(), 0);
}

}  // namespace
}  // namespace troika::device::openvino
