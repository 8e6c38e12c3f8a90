// Which number format each matrix of a model has: one for all, or a mix of two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troika/base/result.h"
#include "troika/model/tensor_type.h"

namespace troika::model {

struct WeightMix {
  TensorType type = TensorType::kQ4_0;
  // As in files called Q4_K_M: what matters most to the answer has this type instead. That is the
  // output matrix, and attn_v and ffn_down in about half of the layers.
  std::optional<TensorType> better = std::nullopt;

  // Of a matrix by its name; `tied`: token_embd.weight is the output matrix.
  TensorType type_of(std::string_view name, int64_t n_layers, bool tied) const;
  // "Q4_0", "Q4_K_M".
  std::string_view name() const;
};

// The name of a type or "Q4_K_M"; case-insensitive.
Result<WeightMix> parse_mix(std::string_view name);
// "F32, ..., Q4_K_M", for help and messages.
std::string mix_names();

}  // namespace troika::model
