// Chooses the next token from logits: greedy, or seeded sampling with llama.cpp's default chain.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/tokenizer.h"

namespace troika::engine {

struct SamplerOptions {
  float temperature = 0.8f;     // 0: greedy, the lowest id on ties
  int top_k = 40;               // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.05f;          // 0: off
  float repeat_penalty = 1.0f;  // 1: off
  int repeat_last_n = 64;       // tokens looked back on; -1: all, 0: off
  uint64_t seed = 0;
};

// kInvalidArgument naming the flag and its value.
Status check(const SamplerOptions& options);

struct TokenLogprob {
  model::TokenId id = 0;
  double logprob = 0;  // natural log of the full distribution at temperature 1
};

// The k most likely tokens, best first, ties by id.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int k);

// One per generated sequence; not shared between threads. The same seed and logits give the same
// tokens on every platform: the generator, the way from its numbers to a token and the exponential
// are defined here, in operations that every platform rounds the same way.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // kInvalidData if a logit is NaN or infinite.
  Result<model::TokenId> sample(std::span<const float> logits);
  // Tells the sampler of a token that is now part of the text (prompt or chosen), for the penalty.
  void accept(model::TokenId id);

 private:
  SamplerOptions options_;
  uint64_t state_[4] = {};
  std::deque<model::TokenId> recent_;
};

// e^x for x <= 0 within a few units of the last place, the same bits on every platform.
double portable_exp(double x);

}  // namespace troika::engine
