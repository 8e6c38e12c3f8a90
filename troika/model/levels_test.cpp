#include "troika/model/levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "troika/model/quantize.h"

namespace troika::model {
namespace {

struct Form {
  TensorType type;
  int largest;  // level, of either sign
};
constexpr Form kForms[] = {{TensorType::kQ4_0, 8},
                           {TensorType::kQ4_1, 15},
                           {TensorType::kQ8_0, 127},
                           {TensorType::kQ4_K, 63 * 15},
                           {TensorType::kQ6_K, 128 * 32}};

struct Row {
  std::vector<std::byte> stored;
  std::vector<float> weights;
};

Row random_row(TensorType type, size_t n) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  Row row;
  row.stored.resize(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(n))));
  quantize_row(type, values, row.stored.data());
  row.weights.resize(n);
  dequantize_row(type, row.stored.data(), row.weights);
  return row;
}

TEST(Levels, OfBlocksAreWholeNumbersThatMakeUpTheWeights) {
  constexpr size_t kRow = 768;
  for (const Form& form : kForms) {
    SCOPED_TRACE(traits(form.type).name);
    const Row row = random_row(form.type, kRow);
    std::vector<float> levels(kRow);
    std::vector<LevelScale> groups(kRow / kLevelGroup);
    row_levels(form.type, row.stored.data(), levels, groups);
    bool differ = false;
    for (size_t i = 0; i < kRow; ++i) {
      const LevelScale& group = groups[i / kLevelGroup];
      EXPECT_EQ(levels[i], std::nearbyint(levels[i]));
      EXPECT_LE(std::fabs(levels[i]), form.largest);
      const double exact = static_cast<double>(group.scale) * levels[i] + group.offset;
      EXPECT_EQ(static_cast<float>(exact), row.weights[i]) << i;
      differ = differ || levels[i] != levels[0];
    }
    EXPECT_TRUE(differ);
  }
}

TEST(Levels, OfPlainFloatsAreTheWeights) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    const Row row = random_row(type, 45);
    std::vector<float> levels(45);
    std::vector<LevelScale> groups(2, LevelScale{7, 7});
    row_levels(type, row.stored.data(), levels, groups);
    EXPECT_EQ(levels, row.weights);
    for (const LevelScale& group : groups) {
      EXPECT_EQ(group.scale, 1);
      EXPECT_EQ(group.offset, 0);
    }
  }
}

}  // namespace
}  // namespace troika::model
