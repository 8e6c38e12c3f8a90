// Scoring of a text and the times that `bench` reports.
#include <algorithm>
#include <cmath>

#include "troika/engine/engine_state.h"

namespace troika::engine {
namespace {

// -log softmax(logits)[target]
double negative_log_likelihood(std::span<const float> logits, model::TokenId target) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most - static_cast<double>(logits[static_cast<size_t>(target)]);
}

// A fixed sequence of tokens, spread over the vocabulary: the same work in every run.
std::vector<model::TokenId> bench_tokens(int64_t count, int64_t n_vocab) {
  std::vector<model::TokenId> tokens(static_cast<size_t>(count));
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (model::TokenId& token : tokens) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    token = static_cast<model::TokenId>((state >> 33) % static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

}  // namespace

Result<NllResult> Engine::score(std::span<const model::TokenId> ids,
                                const std::function<bool(int64_t, int64_t)>& progress) {
  State& s = *state_;
  if (ids.size() < 2) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a text of {} tokens has nothing to predict: give at least 2", ids.size());
  }
  if (s.options.context < 2) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a context of {} tokens has nothing to predict: give at least 2",
                      s.options.context);
  }
  NllResult result;
  const TimePoint start = s.clock.now();
  s.drop_bench();
  const auto window = static_cast<size_t>(s.options.context);
  const auto piece = static_cast<size_t>(std::min(s.options.batch_rows, s.options.max_logit_rows));
  const runtime::SequenceId sequence = s.cache->new_sequence();
  Status status;
  for (size_t begin = 0; begin < ids.size() && status;) {
    const size_t in_window = begin % window;
    if (in_window == 0) s.cache->truncate(sequence, 0);
    const size_t count = std::min({piece, ids.size() - begin, window - in_window});
    const Result<runtime::Logits> logits =
        s.forward({{{sequence, ids.subspan(begin, count), runtime::WantLogits::kAll}}});
    if (!logits) {
      status = tl::unexpected<Error>(logits.error());
      break;
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t next = begin + i + 1;
      if (next == ids.size() || next % window == 0) continue;
      result.nll_sum += negative_log_likelihood(logits->row(static_cast<int64_t>(i)), ids[next]);
      ++result.tokens;
    }
    begin += count;
    if (progress && !progress(static_cast<int64_t>(begin), static_cast<int64_t>(ids.size()))) {
      status =
          make_error(ErrorCode::kCancelled, "stopped after {} of {} tokens", begin, ids.size());
    }
  }
  s.cache->release(sequence);
  RETURN_IF_ERROR(status);
  result.elapsed = s.clock.now() - start;
  return result;
}

Result<std::span<const model::TokenId>> Engine::State::prepare_bench(int64_t depth,
                                                                     int64_t tokens) {
  if (depth < 0 || tokens < 1 || depth > options.context || tokens > options.context - depth) {
    return make_error(ErrorCode::kContextFull,
                      "{} tokens at a depth of {} do not fit a context of {}: raise -c", tokens,
                      depth, options.context);
  }
  if (!bench_sequence) bench_sequence = cache->new_sequence();
  if (static_cast<int64_t>(measured_tokens.size()) < depth + tokens) {
    measured_tokens = bench_tokens(depth + tokens, graph.n_vocab);
  }
  const std::span<const model::TokenId> all = measured_tokens;
  const int64_t held = std::min(cache->length(*bench_sequence), depth);
  cache->truncate(*bench_sequence, held);
  RETURN_IF_ERROR(feed(*bench_sequence,
                       all.subspan(static_cast<size_t>(held), static_cast<size_t>(depth - held)),
                       runtime::WantLogits::kNone));
  return all.subspan(static_cast<size_t>(depth), static_cast<size_t>(tokens));
}

Result<Duration> Engine::time_prefill(int64_t rows, int64_t depth) {
  State& s = *state_;
  ASSIGN_OR_RETURN(const auto tokens, s.prepare_bench(depth, rows));
  const TimePoint start = s.clock.now();
  RETURN_IF_ERROR(s.feed(*s.bench_sequence, tokens, runtime::WantLogits::kLast));
  return s.clock.now() - start;
}

Result<Duration> Engine::time_decode(int64_t steps, int64_t depth) {
  State& s = *state_;
  ASSIGN_OR_RETURN(const auto tokens, s.prepare_bench(depth, steps));
  const TimePoint start = s.clock.now();
  for (size_t i = 0; i < tokens.size(); ++i) {
    RETURN_IF_ERROR(s.feed(*s.bench_sequence, tokens.subspan(i, 1), runtime::WantLogits::kLast));
  }
  return s.clock.now() - start;
}

}  // namespace troika::engine
