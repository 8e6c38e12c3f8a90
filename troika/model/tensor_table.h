// Which tensors a model of an architecture has, and in which shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/gguf.h"
#include "troika/model/hyper_parameters.h"

namespace troika::model {

struct ExpectedTensor {
  std::string name;
  int64_t rows = 1;
  int64_t cols = 0;
  bool vector = false;    // one dimension, F32
  bool optional = false;  // output.weight (else token_embd.weight serves), rope_freqs.weight
};

// In the order in which a pass through the model reads them.
std::vector<ExpectedTensor> expected_tensors(const HyperParameters& hp);

// Rows of token_embd.weight: the size of the vocabulary.
Result<int64_t> embedding_rows(const GgufHeader& header);

// Checks that the file has every expected tensor in the expected shape and a supported type, and no
// other tensor; one that nothing uses would mean another computation than the one done here.
Status check_tensors(const GgufHeader& header, const HyperParameters& hp);

}  // namespace troika::model
