// Shapes of models: of published ones by name, or of any by its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::model {

struct ModelShape {
  std::string name;
  int64_t hidden = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  int64_t n_vocab = 0;
  int64_t n_ctx = 0;
  float rope_base = 10000.0f;
  float norm_eps = 1e-5f;
  bool tied = false;            // the output uses token_embd.weight
  bool llama3_scaling = false;  // has rope_freqs.weight, with the factors of Llama 3.1
  float llama3_factor = 8;      // by how much it stretches the longest waves
};

// A name of shape_names() (case-insensitive; shapes/NAME.json), or
// "hidden,layers,heads,kv_heads,ffn,vocab".
Result<ModelShape> parse_shape(std::string_view text);

// "tiny, smollm2-135m, ...", for help and messages.
std::string shape_names();

// kInvalidArgument for sizes that no model can have.
Status check_shape(const ModelShape& shape);

}  // namespace troika::model
