#include "troika/model/random_weights.h"

#include <array>
#include <bit>
#include <cstring>

#include "troika/model/k_quants.h"
#include "troika/model/quantize.h"

namespace troika::model {
namespace {

// Scales vary from block to block, as those of real weights do, in 32 steps from 0.75 to 1.25.
constexpr size_t kSteps = 32;
constexpr float kStepsRms = 1.0105f;  // root mean square of the steps
// Root mean square of levels drawn evenly: -8..7 or -7.5..7.5, and -127..127.
constexpr float kRms4 = 4.6368f;
constexpr float kRms4Centred = 4.6098f;
constexpr float kRms8 = 73.6f;
constexpr float kRms6 = 18.4797f;  // -32..31
// Root mean square of the whole scales of parts: 32..63 and 64..127.
constexpr float kScaleRms4K = 48.390f;
constexpr float kScaleRms6K = 97.270f;
constexpr float kSqrt3 = 1.7320508f;  // evenly from -a to a has the root mean square a / sqrt(3)

std::array<uint16_t, kSteps> scale_steps(float mean) {
  std::array<uint16_t, kSteps> steps{};
  for (size_t i = 0; i < kSteps; ++i) {
    const float factor = 0.75f + 0.5f * (static_cast<float>(i) + 0.5f) / kSteps;
    steps[i] = f32_to_f16(mean * factor);
  }
  return steps;
}

uint64_t split_mix(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void store16(std::byte* to, uint16_t value) { std::memcpy(to, &value, sizeof(value)); }
void store64(std::byte* to, uint64_t value) { std::memcpy(to, &value, sizeof(value)); }

}  // namespace

RandomWeights::RandomWeights(uint64_t seed, std::string_view name) {
  uint64_t mixed = seed;
  for (const char c : name) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  state_[0] = split_mix(mixed);
  state_[1] = split_mix(mixed) | 1;
}

// xoroshiro128+ (Blackman and Vigna).
uint64_t RandomWeights::next() {
  const uint64_t a = state_[0];
  const uint64_t b = state_[1] ^ a;
  const uint64_t result = a + state_[1];
  state_[0] = std::rotl(a, 24) ^ b ^ (b << 16);
  state_[1] = std::rotl(b, 37);
  return result;
}

// The high bits, which are the better ones.
uint32_t RandomWeights::next_level(int bits) {
  return static_cast<uint32_t>(next() >> (64 - bits));
}

void RandomWeights::fill_norm(std::span<float> out) {
  for (float& value : out) {
    value = 0.9f + 0.2f * (static_cast<float>(next_level(16)) / 65535.0f);
  }
}

void RandomWeights::fill(TensorType type, float scale, std::span<std::byte> out) {
  switch (type) {
    case TensorType::kQ4_0:
      return fill_q4_0(scale, out);
    case TensorType::kQ4_1:
      return fill_q4_1(scale, out);
    case TensorType::kQ8_0:
      return fill_q8_0(scale, out);
    case TensorType::kQ4_K:
      return fill_q4_k(scale, out);
    case TensorType::kQ6_K:
      return fill_q6_k(scale, out);
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return fill_plain(type, scale, out);
  }
}

void RandomWeights::fill_plain(TensorType type, float scale, std::span<std::byte> out) {
  const auto step = static_cast<size_t>(traits(type).block_bytes);
  const float unit = scale * kSqrt3 / 32768.0f;
  for (size_t at = 0; at + step <= out.size(); at += step) {
    // Odd numbers from -32767 to 32767: none is zero, and their mean is.
    const auto level = static_cast<int32_t>(next_level(15)) * 2 - 32767;
    const float value = static_cast<float>(level) * unit;
    quantize_row(type, std::span(&value, 1), out.data() + at);
  }
}

void RandomWeights::fill_q4_0(float scale, std::span<std::byte> out) {
  const auto steps = scale_steps(scale / (kRms4 * kStepsRms));
  constexpr size_t kBlockBytes = 18;
  for (size_t at = 0; at + kBlockBytes <= out.size(); at += kBlockBytes) {
    std::byte* block = out.data() + at;
    // The levels -8..7 have the mean -1/2: the scale's sign is random so that the weights' is 0.
    const uint32_t bits = next_level(6);
    store16(block, static_cast<uint16_t>(steps[bits & 31] | ((bits & 32) << 10)));
    store64(block + 2, next());
    store64(block + 10, next());
  }
}

void RandomWeights::fill_q4_1(float scale, std::span<std::byte> out) {
  const auto steps = scale_steps(scale / (kRms4Centred * kStepsRms));
  std::array<uint16_t, kSteps> minima{};
  for (size_t i = 0; i < kSteps; ++i) minima[i] = f32_to_f16(-7.5f * f16_to_f32(steps[i]));
  constexpr size_t kBlockBytes = 20;
  for (size_t at = 0; at + kBlockBytes <= out.size(); at += kBlockBytes) {
    std::byte* block = out.data() + at;
    const uint32_t step = next_level(5);
    store16(block, steps[step]);
    store16(block + 2, minima[step]);
    store64(block + 4, next());
    store64(block + 12, next());
  }
}

void RandomWeights::fill_q8_0(float scale, std::span<std::byte> out) {
  const auto steps = scale_steps(scale / (kRms8 * kStepsRms));
  constexpr size_t kBlockBytes = 34;
  for (size_t at = 0; at + kBlockBytes <= out.size(); at += kBlockBytes) {
    std::byte* block = out.data() + at;
    store16(block, steps[next_level(5)]);
    for (size_t i = 2; i < kBlockBytes; i += 8) store64(block + i, next());
    // No quantizer gives -128, and kernels may rely on it.
    for (size_t i = 2; i < kBlockBytes; ++i) {
      if (block[i] == std::byte{0x80}) block[i] = std::byte{0};
    }
  }
}

// With the minimum of each part 7.5 times its scale.
void RandomWeights::fill_q4_k(float scale, std::span<std::byte> out) {
  const auto steps = scale_steps(scale / (kRms4Centred * kStepsRms * kScaleRms4K));
  std::array<uint16_t, kSteps> minima{};
  for (size_t i = 0; i < kSteps; ++i) minima[i] = f32_to_f16(7.5f * f16_to_f32(steps[i]));
  for (size_t at = 0; at + Q4KBlock::kBytes <= out.size(); at += Q4KBlock::kBytes) {
    std::byte* block = out.data() + at;
    const uint64_t bits = next();
    store16(block, steps[bits >> 59]);
    store16(block + 2, minima[bits >> 59]);
    SixBits scales{};
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = static_cast<uint8_t>(32 | (bits >> (5 * i + 16) & 31));
    }
    pack_scales(scales, scales, block + Q4KBlock::kScales);
    for (size_t i = Q4KBlock::kLevels; i < Q4KBlock::kBytes; i += 8) store64(block + i, next());
  }
}

// The levels -32..31 have the mean -1/2: the sign of each scale is random.
void RandomWeights::fill_q6_k(float scale, std::span<std::byte> out) {
  const auto steps = scale_steps(scale / (kRms6 * kStepsRms * kScaleRms6K));
  for (size_t at = 0; at + Q6KBlock::kBytes <= out.size(); at += Q6KBlock::kBytes) {
    std::byte* block = out.data() + at;
    for (size_t i = 0; i < Q6KBlock::kScales; i += 8) store64(block + i, next());
    for (size_t i = 0; i < Q6KBlock::kParts; ++i) {
      const uint32_t bits = next_level(7);
      const int magnitude = 64 + static_cast<int>(bits & 63);
      block[Q6KBlock::kScales + i] = static_cast<std::byte>(bits < 64 ? magnitude : -magnitude);
    }
    store16(block + Q6KBlock::kD, steps[next_level(5)]);
  }
}

}  // namespace troika::model
