#include "troika/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace troika::engine {
namespace {

struct Candidate {
  model::TokenId id;
  float logit;
};

bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// SplitMix64 (Steele, Lea, Flood 2014): spreads a seed over the generator's state.
uint64_t split_mix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t rotate_left(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

// xoshiro256** (Blackman, Vigna 2018), as a number in [0, 1).
double uniform(uint64_t (&state)[4]) {
  const uint64_t result = rotate_left(state[1] * 5, 7) * 9;
  const uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = rotate_left(state[3], 45);
  return static_cast<double>(result >> 11) * 0x1.0p-53;
}

// Sorts the best `count` candidates to the front and drops the others.
void keep_best(std::vector<Candidate>& candidates, size_t count) {
  count = std::min(count, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<int64_t>(count),
                    candidates.end(), better);
  candidates.resize(count);
}

// Probabilities of sorted candidates.
std::vector<double> softmax(const std::vector<Candidate>& candidates, double temperature) {
  std::vector<double> p(candidates.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] = std::exp((static_cast<double>(candidates[i].logit) - candidates[0].logit) / temperature);
    sum += p[i];
  }
  for (double& value : p) value /= sum;
  return p;
}

void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  const std::vector<double> p = softmax(candidates, 1.0);
  double sum = 0;
  size_t count = 0;
  while (count < p.size() && (count == 0 || sum < top_p)) sum += p[count++];
  candidates.resize(count);
}

void keep_min_p(std::vector<Candidate>& candidates, double min_p) {
  const double least = candidates[0].logit + std::log(min_p);
  const auto end = std::find_if(candidates.begin() + 1, candidates.end(),
                                [&](const Candidate& c) { return c.logit < least; });
  candidates.erase(end, candidates.end());
}

Status check_range(std::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} {}: use {} to {}", flag, value, least, most);
}

}  // namespace

Status check(const SamplerOptions& options) {
  RETURN_IF_ERROR(check_range("--temp", options.temperature, 0, 100));
  RETURN_IF_ERROR(check_range("--top-k", options.top_k, 0, 1 << 30));
  RETURN_IF_ERROR(check_range("--top-p", options.top_p, 0, 1));
  RETURN_IF_ERROR(check_range("--min-p", options.min_p, 0, 1));
  RETURN_IF_ERROR(check_range("--repeat-penalty", options.repeat_penalty, 0.01, 100));
  return check_range("--repeat-last-n", options.repeat_last_n, -1, 1 << 30);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int k) {
  if (logits.empty() || k <= 0) return {};
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double log_sum = std::log(sum) + most;

  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<model::TokenId>(i), logits[i]};
  }
  keep_best(candidates, static_cast<size_t>(k));
  std::vector<TokenLogprob> top;
  for (const Candidate& c : candidates) top.push_back({c.id, c.logit - log_sum});
  return top;
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  uint64_t seed = options.seed;
  for (uint64_t& word : state_) word = split_mix(seed);
}

void Sampler::accept(model::TokenId id) {
  if (options_.repeat_penalty == 1.0f || options_.repeat_last_n == 0) return;
  recent_.push_back(id);
  if (options_.repeat_last_n > 0 && recent_.size() > static_cast<size_t>(options_.repeat_last_n)) {
    recent_.pop_front();
  }
}

Result<model::TokenId> Sampler::sample(std::span<const float> logits) {
  const auto bad = std::count_if(logits.begin(), logits.end(),
                                 [](float value) { return !std::isfinite(value); });
  if (bad > 0 || logits.empty()) {
    return make_error(ErrorCode::kInvalidData, "{} of {} logits are NaN or infinite", bad,
                      logits.size());
  }
  if (options_.temperature <= 0 && recent_.empty()) {
    const auto best = std::max_element(logits.begin(), logits.end());
    return static_cast<model::TokenId>(best - logits.begin());
  }
  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<model::TokenId>(i), logits[i]};
  }
  for (const model::TokenId id : std::unordered_set(recent_.begin(), recent_.end())) {
    float& logit = candidates[static_cast<size_t>(id)].logit;
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
  if (options_.temperature <= 0) {
    return std::min_element(candidates.begin(), candidates.end(), better)->id;
  }
  keep_best(candidates, options_.top_k > 0 ? static_cast<size_t>(options_.top_k) : logits.size());
  if (options_.top_p < 1) keep_top_p(candidates, options_.top_p);
  if (options_.min_p > 0) keep_min_p(candidates, options_.min_p);
  const std::vector<double> p = softmax(candidates, options_.temperature);
  double left = uniform(state_);
  for (size_t i = 0; i < p.size(); ++i) {
    left -= p[i];
    if (left < 0) return candidates[i].id;
  }
  return candidates.back().id;
}

}  // namespace troika::engine
