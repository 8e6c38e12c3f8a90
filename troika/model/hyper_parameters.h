// The hyper-parameters of a transformer, read from GGUF metadata and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/gguf.h"

namespace troika::model {

enum class RopeScaling { kNone, kLinear, kYarn, kLongRope };

struct HyperParameters {
  std::string architecture;  // "llama"
  std::string name;          // general.name; may be empty
  int64_t n_vocab = 0;
  int64_t n_ctx_train = 0;  // context length that the model was trained for
  int64_t hidden = 0;       // hidden size
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;  // width of the MLP
  float norm_eps = 0;
  int64_t rope_dim = 0;  // dimensions of a head that are rotated, even, <= head_dim
  float rope_base = 0;
  RopeScaling rope_scaling = RopeScaling::kNone;
  float rope_scale_factor = 1;  // kLinear: positions are divided by it
  // Per pair of dimensions, each frequency is divided by its factor (Llama 3's scaling, stored as
  // the tensor rope_freqs.weight); empty or rope_dim / 2 long.
  std::vector<float> rope_factors;

  // Tokens that attention sees, as the file says; 0: all. Attention here always sees all tokens, so
  // an engine refuses a context longer than the window.
  int64_t sliding_window = 0;

  int64_t q_width() const { return n_heads * head_dim; }
  int64_t kv_width() const { return n_kv_heads * head_dim; }
};

// Reads and checks the metadata of a model. Sets neither n_vocab, unless the file names it, nor
// rope_factors, which is a tensor. kUnsupported for an architecture or a variation of it that is
// not computed here.
Result<HyperParameters> read_hyper_parameters(const GgufHeader& header);

// "llama", for messages.
std::string supported_architectures();

}  // namespace troika::model
