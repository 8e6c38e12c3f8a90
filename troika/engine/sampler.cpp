#include "troika/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

double weight(const Candidate& candidate, float best, double temperature) {
  return portable_exp((static_cast<double>(candidate.logit) - best) / temperature);
}

// The fewest best candidates that together have the probability. The best comes first in
// `candidates`; the rest is sorted only as far as needed, which is nearly always a small part.
void keep_top_p(std::vector<Candidate>& candidates, double top_p) {
  const float best = candidates[0].logit;
  double total = 0;
  for (const Candidate& c : candidates) total += weight(c, best, 1.0);
  const double wanted = total * top_p;
  double sum = 0;
  size_t sorted = 0;
  for (size_t kept = 0; kept < candidates.size(); ++kept) {
    if (kept == sorted) {
      sorted = std::min(candidates.size(), std::max<size_t>(64, 4 * sorted));
      std::partial_sort(candidates.begin() + static_cast<int64_t>(kept),
                        candidates.begin() + static_cast<int64_t>(sorted), candidates.end(),
                        better);
    }
    sum += weight(candidates[kept], best, 1.0);
    if (sum >= wanted) return candidates.resize(kept + 1);
  }
}

void keep_min_p(std::vector<Candidate>& candidates, double min_p) {
  const float best = candidates[0].logit;
  std::erase_if(candidates, [&](const Candidate& c) { return weight(c, best, 1.0) < min_p; });
}

// The candidate at `where` in [0, 1) of their probabilities laid end to end.
model::TokenId at(const std::vector<Candidate>& candidates, double temperature, double where) {
  const float best = candidates[0].logit;
  double total = 0;
  for (const Candidate& c : candidates) total += weight(c, best, temperature);
  double sum = 0;
  for (const Candidate& c : candidates) {
    sum += weight(c, best, temperature);
    if (sum > where * total) return c.id;
  }
  return candidates.back().id;
}

Status check_range(std::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} {}: use {} to {}", flag, value, least, most);
}

}  // namespace

double portable_exp(double x) {
  // x = k ln 2 + r with |r| <= ln 2 / 2, and e^r by its series, whose 14 terms reach the last
  // place.
  if (x < -745) return 0;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;  // so short that k times it is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int n = 13; n > 0; --n) sum = 1 + r * sum / n;
  return std::ldexp(sum, static_cast<int>(k));
}

Status check(const SamplerOptions& options) {
  RETURN_IF_ERROR(check_range("--temp", options.temperature, 0, 100));
  RETURN_IF_ERROR(check_range("--top-k", options.top_k, 0, 1 << 30));
  RETURN_IF_ERROR(check_range("--top-p", options.top_p, 0, 1));
  RETURN_IF_ERROR(check_range("--min-p", options.min_p, 0, 1));
  RETURN_IF_ERROR(check_range("--repeat-penalty", options.repeat_penalty, 0.01f, 100));
  return check_range("--repeat-last-n", options.repeat_last_n, -1, 1 << 30);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int k) {
  if (logits.empty() || k <= 0) return {};
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double log_sum = std::log(sum);

  std::vector<Candidate> candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<model::TokenId>(i), logits[i]};
  }
  keep_best(candidates, static_cast<size_t>(k));
  std::vector<TokenLogprob> top;
  for (const Candidate& c : candidates) top.push_back({c.id, (c.logit - most) - log_sum});
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
    if (id < 0 || static_cast<size_t>(id) >= candidates.size()) continue;
    float& logit = candidates[static_cast<size_t>(id)].logit;
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    constexpr float kMost = std::numeric_limits<float>::max();
    logit = std::clamp(logit, -kMost, kMost);
  }
  if (options_.temperature <= 0) {
    return std::min_element(candidates.begin(), candidates.end(), better)->id;
  }
  if (options_.top_k > 0) {
    keep_best(candidates, static_cast<size_t>(options_.top_k));
  } else {
    std::iter_swap(candidates.begin(),
                   std::min_element(candidates.begin(), candidates.end(), better));
  }
  if (options_.top_p < 1) keep_top_p(candidates, options_.top_p);
  if (options_.min_p > 0) keep_min_p(candidates, options_.min_p);
  return at(candidates, options_.temperature, uniform(state_));
}

}  // namespace troika::engine
