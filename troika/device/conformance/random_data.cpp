#include "troika/device/conformance/random_data.h"

#include "troika/model/quantize.h"

namespace troika::device::conformance {
namespace {

// One value in this many is an outlier.
constexpr int64_t kOutlierEvery = 97;
constexpr float kOutlierScale = 90;  // times at most 3.5
constexpr float kHugeValue = 26000;
constexpr float kSmallScale = 0.01f;

}  // namespace

RandomData::RandomData(std::string_view name) : state_(0xcbf29ce484222325u) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
}

// SplitMix64 (Steele, Lea and Flood).
uint64_t RandomData::next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float RandomData::normal() {
  const uint64_t bits = next();
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(bits >> (16 * i) & 0xffff);
  // Four even draws from 0 to 65535 have the mean 131070 and the deviation 37837.
  return (sum - 131070.0f) / 37837.0f;
}

int64_t RandomData::below(int64_t n) {
  return static_cast<int64_t>(next() % static_cast<uint64_t>(n));
}

std::vector<float> RandomData::activations(int64_t rows, int64_t width, Spread spread) {
  std::vector<float> values(static_cast<size_t>(rows * width));
  const bool outliers = spread == Spread::kOutliers || spread == Spread::kHuge;
  for (float& value : values) {
    value = normal() * (spread == Spread::kSmall ? kSmallScale : 1);
    if (outliers && below(kOutlierEvery) == 0) value *= kOutlierScale;
  }
  if (spread == Spread::kHuge) {
    for (int64_t row = 0; row < rows; ++row) {
      values[static_cast<size_t>(row * width + below(width))] = kHugeValue;
    }
  }
  return values;
}

std::vector<std::byte> RandomData::weights(model::TensorType type, int64_t rows, int64_t cols,
                                           float scale) {
  const int64_t row_bytes = model::row_bytes(type, cols);
  std::vector<std::byte> stored(static_cast<size_t>(rows * row_bytes));
  std::vector<float> values(static_cast<size_t>(cols));
  for (int64_t row = 0; row < rows; ++row) {
    for (float& value : values) value = scale * normal();
    model::quantize_row(type, values, stored.data() + row * row_bytes);
  }
  return stored;
}

}  // namespace troika::device::conformance
