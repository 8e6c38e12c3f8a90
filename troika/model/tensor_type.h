// The number formats of stored weights: names, GGUF ids, quantization blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troika::model {

// Values are the type ids of the GGUF format (gguf.md in ggml-org/ggml).
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
  kBF16 = 30,
};

// Where all types are meant, in the order in which tables and tests list them.
inline constexpr std::array kTensorTypes = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16,
                                            TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1,
                                            TensorType::kQ4_K, TensorType::kQ6_K};

struct TypeTraits {
  TensorType type;
  std::string_view name;  // "Q4_1"
  int block_weights;      // weights in one quantization block; 1 for plain formats
  int block_bytes;        // bytes of one block
};

// The traits of a supported type; nullopt for an id that is unknown or not supported here.
std::optional<TypeTraits> traits_of(uint32_t gguf_type_id);
const TypeTraits& traits(TensorType type);
// By name, case-insensitive: "q4_0".
std::optional<TensorType> type_from_name(std::string_view name);
// The name of any id that GGUF ever assigned ("Q4_K"), for messages; "#77" for others.
std::string gguf_type_name(uint32_t gguf_type_id);
// "F32, F16, Q4_0, ...", for messages.
std::string supported_type_names();

// Bytes of one row of `cols` weights; `cols` must be a multiple of block_weights.
inline int64_t row_bytes(TensorType type, int64_t cols) {
  const TypeTraits& t = traits(type);
  return cols / t.block_weights * t.block_bytes;
}

}  // namespace troika::model
