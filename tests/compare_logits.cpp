#include "tests/compare_logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troika {

double nmse(std::span<const float> got, std::span<const float> expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error / norm;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  std::vector<double> result;
  result.reserve(logits.size());
  for (const float logit : logits) {
    result.push_back(static_cast<double>(logit) - most - std::log(sum));
  }
  return result;
}

model::TokenId likeliest(std::span<const float> logits) {
  return static_cast<model::TokenId>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
}

std::vector<std::pair<model::TokenId, double>> top_ten(std::span<const float> logits) {
  const std::vector<double> logprobs = log_softmax(logits);
  std::vector<model::TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min<size_t>(10, ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), [&](auto a, auto b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  std::vector<std::pair<model::TokenId, double>> top;
  for (auto id = ids.begin(); id != ids.begin() + count; ++id) {
    top.emplace_back(*id, logprobs[static_cast<size_t>(*id)]);
  }
  return top;
}

double top_error(std::span<const float> got, std::span<const float> expected) {
  const std::vector<double> logprobs = log_softmax(got);
  double worst = 0;
  for (const auto& [id, logprob] : top_ten(expected)) {
    worst = std::max(worst, std::abs(logprobs[static_cast<size_t>(id)] - logprob));
  }
  return worst;
}

int expect_greedy(std::span<const model::TokenId> got, std::span<const model::TokenId> expected,
                  std::span<const double> gaps, double least_gap) {
  int same = 0;
  for (size_t i = 0; i < expected.size() && gaps[i] >= least_gap; ++i) {
    const bool equal = i < got.size() && got[i] == expected[i];
    EXPECT_TRUE(equal) << "generated token " << i << " is "
                       << (i < got.size() ? std::to_string(got[i]) : "missing") << ", not "
                       << expected[i];
    if (!equal) break;
    ++same;
  }
  return same;
}

}  // namespace troika
