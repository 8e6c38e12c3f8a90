// How logits and answers are held against others: by mean square, by the log-probabilities of the
// likeliest tokens, and by the tokens of a greedy answer.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "troika/model/tokenizer.h"

namespace troika {

// Sum of the squared differences, as a part of the sum of the expected squares. Equal sizes.
double nmse(std::span<const float> got, std::span<const float> expected);

// Log-probabilities of the tokens of one row.
std::vector<double> log_softmax(std::span<const float> logits);

// The token that a greedy answer takes.
model::TokenId likeliest(std::span<const float> logits);

// The ten likeliest tokens with their log-probabilities, the first one first.
std::vector<std::pair<model::TokenId, double>> top_ten(std::span<const float> logits);

// The largest difference of a log-probability among the ten likeliest that are expected.
double top_error(std::span<const float> got, std::span<const float> expected);

// Expects the tokens to be equal up to the first choice that was closer than `least_gap`, which
// devices may make otherwise. `gaps` of log-probability between first and second choice. Gives the
// number of tokens that were compared.
int expect_greedy(std::span<const model::TokenId> got, std::span<const model::TokenId> expected,
                  std::span<const double> gaps, double least_gap);

}  // namespace troika
