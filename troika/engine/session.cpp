#include <algorithm>

#include "troika/base/thread_time.h"
#include "troika/engine/engine_state.h"
#include "troika/engine/stop_strings.h"

namespace troika::engine {

// Text on its way to the reader: whole UTF-8 sequences, nothing that may become a stop string.
class Session::TextStream {
 public:
  TextStream(const std::vector<std::string>& stop,
             const std::function<bool(std::string_view)>& sink)
      : stop_(stop), sink_(sink) {}

  // False if the reader wants no more.
  bool push(const std::string& bytes) { return emit(stop_.push(utf8_.push(bytes))); }
  void finish() {
    if (!stopped()) emit(stop_.push(utf8_.finish()));
    emit(stop_.finish());  // after the reader's no, only into the text
  }
  bool stopped() const { return stop_.stopped(); }
  std::string take_text() { return std::move(text_); }

 private:
  bool emit(const std::string& text) {
    text_ += text;
    if (!text.empty() && sink_ && wanted_) wanted_ = sink_(text);
    return wanted_;
  }

  model::Utf8Stream utf8_;
  StopStrings stop_;
  const std::function<bool(std::string_view)>& sink_;
  std::string text_;
  bool wanted_ = true;  // until the reader says no
};

// When the tokens of an answer were chosen.
struct Session::TokenTimes {
  int64_t count = 0;
  TimePoint first{};
  TimePoint last{};

  void add(TimePoint now) {
    if (count++ == 0) first = now;
    last = now;
  }
};

namespace {

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

bool is_cancelled(const Status& status) {
  return !status && status.error().code == ErrorCode::kCancelled;
}

double per_second(int64_t count, Duration time) {
  return time > Duration::zero() ? static_cast<double>(count) / to_seconds(time) : 0;
}

}  // namespace

Session::Session(Engine& engine, runtime::SequenceId sequence)
    : engine_(engine), sequence_(sequence) {}

Session::~Session() { engine_.state_->cache->release(sequence_); }

Status Session::check_prompt(std::span<const model::TokenId> prompt) const {
  const Engine::State& s = *engine_.state_;
  if (prompt.empty()) return make_error(ErrorCode::kInvalidArgument, "the prompt is empty");
  if (static_cast<int64_t>(prompt.size()) > s.options.context) {
    return make_error(ErrorCode::kContextFull,
                      "the prompt has {} tokens, the context holds {}: shorten it or raise -c",
                      prompt.size(), s.options.context);
  }
  for (const model::TokenId token : prompt) {
    if (token < 0 || token >= s.graph.n_vocab) {
      return make_error(ErrorCode::kInvalidArgument, "token id {} is not in 0 to {}", token,
                        s.graph.n_vocab - 1);
    }
  }
  return {};
}

int64_t Session::shared_with(std::span<const model::TokenId> prompt) const {
  // The last token is always computed: its logits are wanted.
  return std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end() - 1).first -
         tokens_.begin();
}

Result<std::span<const float>> Session::prefill(std::span<const model::TokenId> prompt,
                                                const std::atomic<bool>* cancel) {
  Engine::State& s = *engine_.state_;
  const auto kept = static_cast<size_t>(shared_with(prompt));
  s.cache->truncate(sequence_, static_cast<int64_t>(kept));
  tokens_.resize(kept);
  std::span<const float> logits;
  const auto piece = static_cast<size_t>(s.options.batch_rows);
  while (tokens_.size() < prompt.size()) {
    if (is_set(cancel))
      return make_error(ErrorCode::kCancelled, "stopped while reading the prompt");
    const std::span<const model::TokenId> next =
        prompt.subspan(tokens_.size(), std::min(piece, prompt.size() - tokens_.size()));
    ASSIGN_OR_RETURN(
        const runtime::Logits given,
        s.feed(sequence_, next,
               tokens_.size() + next.size() == prompt.size() ? runtime::WantLogits::kLast
                                                             : runtime::WantLogits::kNone));
    tokens_.insert(tokens_.end(), next.begin(), next.end());
    if (given.rows > 0) logits = given.row(0);
  }
  return logits;
}

Status Session::decode(std::span<const float> logits, const GenerateOptions& options,
                       TextStream& text, const std::atomic<bool>* cancel, Answer& answer,
                       TokenTimes& times) {
  Engine::State& s = *engine_.state_;
  const model::Tokenizer& tokenizer = s.model.tokenizer();
  Sampler sampler(options.sampling);
  for (const model::TokenId token : tokens_) sampler.accept(token);
  const auto wanted = [&] {
    return options.max_tokens < 0 ||
           static_cast<int64_t>(answer.tokens.size()) < options.max_tokens;
  };
  answer.finish_reason = FinishReason::kLength;
  while (wanted()) {
    if (is_set(cancel)) {
      answer.finish_reason = FinishReason::kCancelled;
      break;
    }
    const ThreadTime choosing;
    ASSIGN_OR_RETURN(const model::TokenId token, sampler.sample(logits));
    s.control.sample += choosing.passed();
    if (tokenizer.is_end_of_generation(token) && !options.ignore_eos) {
      answer.finish_reason = FinishReason::kStop;
      break;
    }
    if (options.logprobs > 0) {
      answer.top_logprobs.push_back(top_logprobs(logits, options.logprobs));
    }
    times.add(s.clock.now());
    answer.tokens.push_back(token);
    sampler.accept(token);
    const bool read_on = text.push(tokenizer.piece(token, options.render_special));
    if (text.stopped() || !read_on) {
      answer.finish_reason = read_on ? FinishReason::kStopString : FinishReason::kCancelled;
      break;
    }
    if (!wanted()) break;
    if (static_cast<int64_t>(tokens_.size()) == s.options.context) {
      answer.finish_reason = FinishReason::kContextFull;
      break;
    }
    ASSIGN_OR_RETURN(const runtime::Logits step,
                     s.forward({{{sequence_, {&token, 1}, runtime::WantLogits::kLast}}}));
    tokens_.push_back(token);
    logits = step.row(0);
  }
  return {};
}

// What the prompt's passes and the steps after it need, before the clock starts.
Status Session::prepare(int64_t rows) {
  Engine::State& s = *engine_.state_;
  if (rows >= s.options.batch_rows) RETURN_IF_ERROR(s.prepare(s.options.batch_rows));
  if (rows % s.options.batch_rows != 0) RETURN_IF_ERROR(s.prepare(rows % s.options.batch_rows));
  return s.prepare(1);
}

Result<Answer> Session::generate(std::span<const model::TokenId> prompt,
                                 const GenerateOptions& options,
                                 const std::function<bool(std::string_view)>& on_text,
                                 const std::atomic<bool>* cancel) {
  Engine::State& s = *engine_.state_;
  RETURN_IF_ERROR(check(options.sampling));
  RETURN_IF_ERROR(check_prompt(prompt));
  Answer answer;
  answer.prompt_tokens = static_cast<int64_t>(prompt.size());
  answer.finish_reason = FinishReason::kCancelled;
  const Status ready = prepare(answer.prompt_tokens - shared_with(prompt));
  if (is_cancelled(ready)) return answer;
  RETURN_IF_ERROR(ready);
  const TimePoint start = s.clock.now();
  s.drop_bench();
  s.reset_uses();

  answer.cached_tokens = shared_with(prompt);
  TextStream text(options.stop, on_text);
  TokenTimes times;
  const Result<std::span<const float>> logits = prefill(prompt, cancel);
  const Duration prefill_time = s.clock.now() - start;
  const int64_t computed = static_cast<int64_t>(tokens_.size()) - answer.cached_tokens;
  const Status done = logits ? decode(*logits, options, text, cancel, answer, times)
                             : Status(tl::unexpected<Error>(logits.error()));
  text.finish();  // what was held back is the reader's, whatever ended the answer
  if (is_cancelled(done)) answer.finish_reason = FinishReason::kCancelled;
  if (!done && !is_cancelled(done)) return tl::unexpected<Error>(done.error());
  answer.text = text.take_text();
  answer.ttft = times.count > 0 ? times.first - start : prefill_time;
  answer.prefill_tok_s = per_second(computed, prefill_time);
  if (times.count > 1) {
    answer.tpot = (times.last - times.first) / (times.count - 1);
    answer.decode_tok_s = per_second(times.count - 1, times.last - times.first);
  }
  answer.elapsed = s.clock.now() - start;
  s.collect_uses();
  if (s.shares_by_rates) s.learn_rates();
  answer.devices = s.uses;
  answer.control = s.control;
  return answer;
}

}  // namespace troika::engine
