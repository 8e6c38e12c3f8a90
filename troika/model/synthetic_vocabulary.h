// A vocabulary for models with random weights: byte-level BPE that encodes any text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

struct SyntheticVocabulary {
  std::vector<std::string> tokens;  // 256 bytes, <s>, </s>, then what the merges make
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  int32_t bos = 0;
  int32_t eos = 0;
};

// kInvalidArgument unless `n_vocab` has room for the bytes and special tokens, and is below what
// merges of up to four letters fill.
Result<SyntheticVocabulary> make_synthetic_vocabulary(int64_t n_vocab);

}  // namespace troika::model
