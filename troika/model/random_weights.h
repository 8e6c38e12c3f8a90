// Random weights of any type, made directly in the stored form: fast, and the same on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "troika/model/tensor_type.h"

namespace troika::model {

class RandomWeights {
 public:
  // A stream of its own for each seed and name.
  RandomWeights(uint64_t seed, std::string_view name);

  // Weights of mean 0 and root mean square `scale`. `out` holds whole blocks.
  void fill(TensorType type, float scale, std::span<std::byte> out);
  // Values from 0.9 to 1.1.
  void fill_norm(std::span<float> out);

 private:
  uint64_t next();
  uint32_t next_level(int bits);
  void fill_plain(TensorType type, float scale, std::span<std::byte> out);
  void fill_q4_0(float scale, std::span<std::byte> out);
  void fill_q4_1(float scale, std::span<std::byte> out);
  void fill_q8_0(float scale, std::span<std::byte> out);
  void fill_q4_k(float scale, std::span<std::byte> out);
  void fill_q6_k(float scale, std::span<std::byte> out);

  uint64_t state_[2];
};

}  // namespace troika::model
