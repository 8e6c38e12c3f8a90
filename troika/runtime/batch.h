// A ragged batch: tokens of any number of sequences with their positions. One prompt, a chunk of
// it, a decode step, and a batch of many users' steps are one and the same call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "troika/model/tokenizer.h"

namespace troika::runtime {

using SequenceId = int32_t;

enum class WantLogits { kNone, kLast, kAll };

// Tokens that follow what the sequence's KV cache holds already.
struct BatchItem {
  SequenceId sequence = 0;
  std::span<const model::TokenId> tokens;
  WantLogits logits = WantLogits::kLast;
};

struct Batch {
  std::vector<BatchItem> items;
};

// Logits of the rows that asked for them, in the batch's order: [rows, n_vocab]. Valid until the
// next forward pass.
struct Logits {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t n_vocab = 0;
  std::span<const float> row(int64_t i) const {
    return {data + i * n_vocab, static_cast<size_t>(n_vocab)};
  }
};

// What a pass costs at least.
struct Work {
  int64_t macs = 0;          // multiply-adds
  int64_t weight_bytes = 0;  // stored bytes of the weights that are read
  int64_t kv_bytes = 0;      // KV read and written
};

}  // namespace troika::runtime
