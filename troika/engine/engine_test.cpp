#include "troika/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "troika/model/testing/tiny_model.h"
#include "troika/model/utf8.h"

namespace troika::engine {
namespace {

using model::TokenId;
using model::testing::TinyModel;
using Tokens = std::vector<TokenId>;

constexpr int64_t kContext = 64;

EngineOptions small(int64_t context = kContext) {
  EngineOptions options;
  options.context = context;
  options.batch_rows = 16;
  options.threads = 2;
  return options;
}

Result<std::unique_ptr<Engine>> open(const EngineOptions& options,
                                     const TinyModel& tiny = TinyModel()) {
  const auto bytes = tiny.bytes();
  return Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}),
                        options);
}

GenerateOptions greedy(int64_t max_tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = max_tokens;
  options.ignore_eos = true;
  return options;
}

GenerateOptions random(int64_t max_tokens, uint64_t seed) {
  GenerateOptions options = greedy(max_tokens);
  options.sampling.temperature = 5;
  options.sampling.top_k = 0;
  options.sampling.top_p = 1;
  options.sampling.min_p = 0;
  options.sampling.seed = seed;
  return options;
}

Tokens prompt(int64_t count, TokenId salt = 0) {
  Tokens tokens;
  for (TokenId i = 0; i < count; ++i) tokens.push_back((i * 37 + 11 + salt) % 300);
  return tokens;
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : engine_(std::move(*open(small()))), session_(std::move(*engine_->new_session())) {}

  Answer answer(const Tokens& tokens, const GenerateOptions& options) {
    auto result = session_->generate(tokens, options);
    EXPECT_TRUE(result.has_value()) << result.error().message;
    return result ? std::move(*result) : Answer{};
  }

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_F(EngineTest, GreedyAnswersAreTheSameAgain) {
  const Answer first = answer(prompt(20), greedy(10));
  EXPECT_EQ(first.tokens.size(), 10u);
  EXPECT_EQ(first.finish_reason, FinishReason::kLength);
  EXPECT_EQ(first.prompt_tokens, 20);
  EXPECT_EQ(first.cached_tokens, 0);
  EXPECT_GT(first.ttft, Duration::zero());
  EXPECT_GT(first.prefill_tok_s, 0);
  EXPECT_GT(first.decode_tok_s, 0);
  ASSERT_EQ(first.devices.size(), 1u);
  EXPECT_EQ(first.devices[0].share, 1);
  EXPECT_EQ(answer(prompt(20), greedy(10)).tokens, first.tokens);
  const auto fresh = open(small());
  const auto session = (*fresh)->new_session();
  EXPECT_EQ((*session)->generate(prompt(20), greedy(10))->tokens, first.tokens);
}

TEST_F(EngineTest, TellsTheTimeOnCores) {
  const Answer one = answer(prompt(20), greedy(10));
  ASSERT_EQ(one.devices.size(), 1u);
  const DeviceUse& cpu = one.devices[0];
  EXPECT_GT(cpu.cpu, Duration::zero());
  EXPECT_EQ(cpu.threads, 2);
  // No thread has more time on cores than passes; the clocks tick apart.
  EXPECT_LE(cpu.cpu, cpu.threads * one.elapsed + std::chrono::milliseconds(50));
  EXPECT_GE(one.elapsed, one.ttft);
  EXPECT_EQ(one.control.passes, 2 + 9);  // 20 rows in passes of 16, then a token each
  EXPECT_GT(one.control.submit, Duration::zero());
  EXPECT_GT(one.control.sample, Duration::zero());
  EXPECT_GE(one.control.thread, one.control.sum());
  // Each answer has its own.
  const Answer two = answer(prompt(20), greedy(1));
  EXPECT_EQ(two.control.passes, 1);
  EXPECT_LT(two.devices[0].macs, cpu.macs);
}

// Tells the time in whole milliseconds.
class CoarseClock final : public Clock {
 public:
  TimePoint now() const override { return system_clock().now() / kTick * kTick; }
  static constexpr Duration kTick = std::chrono::milliseconds(1);
};

TEST(Engine, GoesByTheClockItIsGiven) {
  const CoarseClock clock;
  const auto bytes = TinyModel().bytes();
  EngineOptions options = small();
  options.trace = true;
  const auto engine = Engine::create(
      *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}), options, clock);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto answer = (*(*engine)->new_session())->generate(prompt(20), greedy(10));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  for (const Duration told : {answer->elapsed, answer->ttft, (*engine)->compile_time(),
                              *(*engine)->time_prefill(20, 0)}) {
    EXPECT_EQ(told % CoarseClock::kTick, Duration::zero());
  }
  const Trace trace = (*engine)->trace();
  ASSERT_FALSE(trace.events.empty());
  for (const TraceEvent& event : trace.events) {
    EXPECT_EQ(event.start % CoarseClock::kTick, Duration::zero());
  }
  EXPECT_EQ(trace.description, (*engine)->plan().reason);
  EXPECT_NE(trace.title, "");
}

TEST_F(EngineTest, SeedsReproduceAnswers) {
  const Answer one = answer(prompt(5), random(30, 1));
  EXPECT_EQ(answer(prompt(5), random(30, 1)).tokens, one.tokens);
  EXPECT_NE(answer(prompt(5), random(30, 2)).tokens, one.tokens);
}

TEST_F(EngineTest, NothingIsGeneratedIfNothingIsWanted) {
  const Answer none = answer(prompt(5), greedy(0));
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_EQ(none.text, "");
  EXPECT_EQ(none.finish_reason, FinishReason::kLength);
  EXPECT_EQ(session_->tokens().size(), 5u);
}

TEST_F(EngineTest, AFullContextEndsTheAnswer) {
  const Answer rest = answer(prompt(50), greedy(-1));
  EXPECT_EQ(rest.finish_reason, FinishReason::kContextFull);
  // The last token needs no place: nothing is computed after it.
  EXPECT_EQ(rest.tokens.size(), static_cast<size_t>(kContext - 50 + 1));
  EXPECT_EQ(session_->tokens().size(), static_cast<size_t>(kContext));
  const Answer one = answer(prompt(kContext, 1), greedy(-1));
  EXPECT_EQ(one.tokens.size(), 1u);
  EXPECT_EQ(one.finish_reason, FinishReason::kContextFull);
}

TEST_F(EngineTest, PromptsThatCannotBeMeantChangeNothing) {
  const Answer before = answer(prompt(20), greedy(5));
  const Tokens held(session_->tokens().begin(), session_->tokens().end());
  const auto long_prompt = session_->generate(prompt(kContext + 3), greedy(5));
  ASSERT_FALSE(long_prompt.has_value());
  EXPECT_EQ(long_prompt.error().code, ErrorCode::kContextFull);
  EXPECT_NE(long_prompt.error().message.find("67 tokens"), std::string::npos);
  EXPECT_NE(long_prompt.error().message.find("holds 64"), std::string::npos);
  for (const Tokens& bad : {Tokens{}, Tokens{1, -1}, Tokens{300}, Tokens{INT32_MAX, 1}}) {
    const auto refused = session_->generate(bad, greedy(5));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
  GenerateOptions options = greedy(5);
  options.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  const auto refused = session_->generate(prompt(3), options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(
      std::equal(held.begin(), held.end(), session_->tokens().begin(), session_->tokens().end()));
  EXPECT_EQ(answer(prompt(20), greedy(5)).tokens, before.tokens);
}

TEST_F(EngineTest, KeepsWhatThePromptShares) {
  const Tokens first = prompt(20);
  const Answer one = answer(first, greedy(6));
  Tokens second = first;
  second.insert(second.end(), one.tokens.begin(), one.tokens.end());
  const Tokens more = prompt(9, 5);
  second.insert(second.end(), more.begin(), more.end());
  const Answer two = answer(second, greedy(8));
  EXPECT_EQ(two.cached_tokens, 20 + 5);  // the answer's last token was never computed
  const auto fresh = open(small());
  const auto session = (*fresh)->new_session();
  EXPECT_EQ((*session)->generate(second, greedy(8))->tokens, two.tokens);
  // A shorter one; one that is the same; one that shares nothing.
  EXPECT_EQ(answer(Tokens(second.begin(), second.begin() + 10), greedy(2)).cached_tokens, 9);
  EXPECT_EQ(answer(first, greedy(6)).tokens, one.tokens);
  EXPECT_EQ(answer(prompt(5, 1), greedy(2)).cached_tokens, 0);
}

TEST_F(EngineTest, TheEndTokenEndsTheAnswerUnlessIgnored) {
  const Answer all = answer(prompt(20), random(20, 3));
  TinyModel tiny;
  tiny.metadata["tokenizer.ggml.eos_token_id"] = static_cast<uint32_t>(all.tokens[7]);
  const auto engine = open(small(), tiny);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto session = (*engine)->new_session();
  GenerateOptions options = random(20, 3);
  EXPECT_EQ((*session)->generate(prompt(20), options)->tokens, all.tokens);
  options.ignore_eos = false;
  options.logprobs = 1;
  const auto ended = (*session)->generate(prompt(20), options);
  const auto first = std::find(all.tokens.begin(), all.tokens.end(), all.tokens[7]);
  EXPECT_EQ(ended->tokens, Tokens(all.tokens.begin(), first));
  EXPECT_EQ(ended->finish_reason, FinishReason::kStop);
  EXPECT_EQ(ended->top_logprobs.size(), ended->tokens.size());
}

TEST_F(EngineTest, LogprobsAreOrderedAndComplete) {
  GenerateOptions options = greedy(6);
  options.logprobs = 4;
  const Answer six = answer(prompt(20), options);
  ASSERT_EQ(six.top_logprobs.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    ASSERT_EQ(six.top_logprobs[i].size(), 4u);
    EXPECT_EQ(six.top_logprobs[i][0].id, six.tokens[i]);  // greedy
    for (size_t j = 1; j < 4; ++j) {
      EXPECT_LE(six.top_logprobs[i][j].logprob, six.top_logprobs[i][j - 1].logprob);
    }
    EXPECT_LT(six.top_logprobs[i][0].logprob, 0);
  }
  options.logprobs = INT32_MAX;
  double sum = 0;
  const Answer whole = answer(prompt(20), options);
  ASSERT_EQ(whole.top_logprobs[0].size(), 300u);
  for (const TokenLogprob& one : whole.top_logprobs[0]) sum += std::exp(one.logprob);
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST_F(EngineTest, TextComesInWholeCharactersAndUpToAStopString) {
  std::string text;
  const auto all = session_->generate(prompt(5), random(50, 4), [&](std::string_view piece) {
    EXPECT_FALSE(piece.empty());
    EXPECT_EQ(model::valid_utf8_prefix(piece), piece.size());
    text += piece;
    return true;
  });
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->text, text);
  ASSERT_GT(text.size(), 20u);

  GenerateOptions options = random(50, 4);
  // Characters from the middle on, up to a border between two.
  size_t begin = text.size() / 2;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  size_t end = begin + 4;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  options.stop = {"", text.substr(begin, end - begin)};
  std::string until;
  const auto stopped = session_->generate(prompt(5), options, [&](std::string_view piece) {
    until += piece;
    return true;
  });
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->finish_reason, FinishReason::kStopString);
  EXPECT_EQ(until, text.substr(0, text.find(options.stop[1])));
  EXPECT_EQ(stopped->text, until);
  EXPECT_LT(stopped->tokens.size(), all->tokens.size());
}

TEST_F(EngineTest, TheReaderEndsTheAnswer) {
  int calls = 0;
  GenerateOptions options = random(50, 4);
  options.stop = {std::string(100, 'x')};
  const auto answer =
      session_->generate(prompt(5), options, [&](std::string_view) { return ++calls < 3; });
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(calls, 3);  // and never again
  EXPECT_LT(answer->tokens.size(), 50u);
}

TEST_F(EngineTest, CancelBeforeAndInTheMiddle) {
  std::atomic<bool> cancel{true};
  const auto before = session_->generate(prompt(20), greedy(10), {}, &cancel);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(before->tokens.empty());
  EXPECT_TRUE(session_->tokens().empty());
  EXPECT_EQ(before->prefill_tok_s, 0);
  cancel = false;
  int pieces = 0;
  const auto middle = session_->generate(
      prompt(20), random(30, 4),
      [&](std::string_view) {
        cancel = ++pieces == 3;
        return true;
      },
      &cancel);
  ASSERT_TRUE(middle.has_value());
  EXPECT_EQ(middle->finish_reason, FinishReason::kCancelled);
  EXPECT_GE(middle->tokens.size(), 3u);
  EXPECT_LT(middle->tokens.size(), 30u);
  cancel = false;
  EXPECT_EQ(session_->generate(prompt(20), greedy(10), {}, &cancel)->tokens.size(), 10u);
}

TEST_F(EngineTest, ADeviceLostInTheMiddleIsAnErrorAndTheSessionStaysSound) {
  int pieces = 0;
  const auto lost = session_->generate(prompt(20), random(30, 4), [&](std::string_view) {
    if (++pieces == 3) {
      engine_->devices()[0]->abandon({ErrorCode::kDeviceFailed, "pulled out"});
    }
    return true;
  });
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, ErrorCode::kDeviceFailed);
  const size_t held = session_->tokens().size();
  EXPECT_GE(held, 20u);
  // Refused, not hung; what is held stays counted right.
  const auto again = session_->generate(prompt(20), greedy(3));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kDeviceFailed);
  EXPECT_EQ(session_->tokens().size(), held);
  session_.reset();
  EXPECT_EQ(engine_->kv_cache().free_blocks(), kContext / device::kKvBlockTokens);
}

// Greedy tokens of exact devices are the same, whoever computes them.
TEST(Engine, TheAnswerGoesOnWhenADeviceIsLost) {
  const auto alone = open(small());
  const auto expected = (*(*alone)->new_session())->generate(prompt(20), greedy(30));
  ASSERT_TRUE(expected.has_value());
  for (const size_t victim : {0u, 1u}) {
    EngineOptions options = small();
    options.devices = "cpu@0,systolic@0";
    options.force_all = true;
    std::vector<std::string> warnings;
    options.warn = [&](const std::string& line) { warnings.push_back(line); };
    const auto engine = open(options);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    ASSERT_EQ((*engine)->devices().size(), 2u);
    const auto session = (*engine)->new_session();
    int pieces = 0;
    const auto answer = (*session)->generate(prompt(20), greedy(30), [&](std::string_view) {
      if (++pieces == 3) {
        (*engine)->devices()[victim]->abandon({ErrorCode::kDeviceFailed, "pulled out"});
      }
      return true;
    });
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->tokens, expected->tokens);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("is put aside"), std::string::npos) << warnings[0];
    EXPECT_EQ((*engine)->devices().size(), 1u);
    ASSERT_EQ(answer->devices.size(), 2u);
    EXPECT_GT(answer->devices[0].share, 0);
    EXPECT_GT(answer->devices[1].share, 0);
    EXPECT_NEAR(answer->devices[0].share + answer->devices[1].share, 1, 1e-9);
  }
}

// A plan for single rows that is dropped with its device no longer says how long passes may be.
TEST(Engine, PassesAreAsLongAsAskedForOnceAPlanIsDropped) {
  const auto alone = open(small());
  EngineOptions options = small();
  options.devices = "cpu@0,systolic@0";
  options.plan = plan::single_device_plan((*alone)->graph(), "systolic@0", 1, "f32");
  options.plan->devices = {"cpu@0", "systolic@0"};
  const auto engine = open(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->options().batch_rows, 1);
  const auto session = (*engine)->new_session();
  (*engine)->devices()[1]->abandon({ErrorCode::kDeviceFailed, "pulled out"});
  const auto answer = (*session)->generate(prompt(20), greedy(4));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ((*engine)->devices().size(), 1u);
  EXPECT_EQ((*engine)->options().batch_rows, small().batch_rows);
}

TEST(Engine, ScoreIsTheSumOverAllPredictedTokens) {
  constexpr int64_t kWindow = 32;
  EngineOptions options = small(kWindow);
  options.max_logit_rows = 7;
  const auto engine = open(options);
  EngineOptions whole = small(kWindow);
  whole.batch_rows = kWindow;
  whole.max_logit_rows = kWindow;
  const auto reference = open(whole);
  ASSERT_TRUE(engine && reference);
  for (const int64_t count : {2, 31, 32, 33, 34, 64, 80}) {
    const Tokens ids = prompt(count);
    double expected = 0;
    int64_t predicted = 0;
    for (int64_t begin = 0; begin < count; begin += kWindow) {
      const auto n = static_cast<size_t>(std::min(kWindow, count - begin));
      const std::span<const TokenId> window = std::span(ids).subspan(static_cast<size_t>(begin), n);
      runtime::KvCache& cache = (*reference)->kv_cache();
      const runtime::SequenceId sequence = cache.new_sequence();
      const auto logits = (*reference)->forward({{{sequence, window, runtime::WantLogits::kAll}}});
      ASSERT_TRUE(logits.has_value());
      for (size_t i = 0; i + 1 < n; ++i) {
        double sum = 0;
        const auto row = logits->row(static_cast<int64_t>(i));
        for (const float logit : row) sum += std::exp(static_cast<double>(logit));
        expected += std::log(sum) - static_cast<double>(row[static_cast<size_t>(window[i + 1])]);
        ++predicted;
      }
      cache.release(sequence);
    }
    int64_t done = 0;
    const auto score = (*engine)->score(ids, [&](int64_t now, int64_t all) {
      EXPECT_GT(now, done);
      EXPECT_EQ(all, count);
      done = now;
      return true;
    });
    ASSERT_TRUE(score.has_value()) << score.error().message;
    EXPECT_EQ(done, count);
    EXPECT_EQ(score->tokens, predicted);
    EXPECT_NEAR(score->nll_sum, expected, 1e-6 * expected);
  }
  const auto stopped = (*engine)->score(prompt(80), [](int64_t, int64_t) { return false; });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_EQ((*engine)->kv_cache().free_blocks(), 1);
  EXPECT_EQ((*engine)->score(prompt(1)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*engine)->score(Tokens{1, 300}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*open(small(1)))->score(prompt(5)).error().code, ErrorCode::kInvalidArgument);
}

TEST(Engine, ContextsThatCannotBeAreRefused) {
  for (const int64_t context : {int64_t{-1}, int64_t{INT32_MAX}, INT64_MAX, INT64_MIN}) {
    const auto engine = open(small(context));
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(engine.error().message.find(std::to_string(context)), std::string::npos);
  }
  EngineOptions huge = small(int64_t{1} << 27);
  huge.max_sequences = 1 << 16;
  const auto engine = open(huge);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, ErrorCode::kOutOfMemory);
  const auto trained = open(small(0));
  ASSERT_TRUE(trained.has_value());
  EXPECT_EQ((*trained)->options().context, 128);
  const auto one = open(small(1));
  ASSERT_TRUE(one.has_value());
  const auto session = (*one)->new_session();
  EXPECT_EQ((*session)->generate(prompt(1), greedy(-1))->tokens.size(), 1u);
}

TEST(Engine, OptionsThatCannotBeAreRefused) {
  const auto code = [](const std::function<void(EngineOptions&)>& spoil) {
    EngineOptions options = small();
    spoil(options);
    const auto engine = open(options);
    EXPECT_FALSE(engine.has_value());
    return engine ? ErrorCode::kInternal : engine.error().code;
  };
  const auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_EQ(code([](EngineOptions& o) { o.batch_rows = 0; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.batch_rows = INT64_MAX; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.max_sequences = 0; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.max_sequences = INT64_MAX; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.max_logit_rows = 0; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.threads = -1; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.devices = ""; }), invalid);
  EXPECT_EQ(code([](EngineOptions& o) { o.devices = "abacus"; }), ErrorCode::kNotFound);
  EXPECT_EQ(code([](EngineOptions& o) { o.kernels = "abacus"; }), ErrorCode::kUnsupported);
  EngineOptions many = small();
  many.max_logit_rows = INT64_MAX;
  EXPECT_TRUE(open(many).has_value());
}

TEST(Engine, TimesPrefillAndDecodeAndGivesTheRoomBack) {
  const auto engine = open(small());
  ASSERT_TRUE(engine.has_value());
  for (const int64_t depth : {0, 20, 5}) {
    const auto prefill = (*engine)->time_prefill(20, depth);
    ASSERT_TRUE(prefill.has_value()) << prefill.error().message;
    EXPECT_GT(*prefill, Duration::zero());
    const auto decode = (*engine)->time_decode(3, depth);
    ASSERT_TRUE(decode.has_value()) << decode.error().message;
    EXPECT_GT(*decode, Duration::zero());
  }
  EXPECT_TRUE((*engine)->time_prefill(kContext, 0).has_value());
  for (const auto& [rows, depth] :
       std::vector<std::pair<int64_t, int64_t>>{{kContext + 1, 0},
                                                {1, kContext},
                                                {0, 1},
                                                {-1, 5},
                                                {5, -1},
                                                {INT64_MAX, 1},
                                                {1, INT64_MAX},
                                                {INT64_MAX, INT64_MAX}}) {
    EXPECT_FALSE((*engine)->time_prefill(rows, depth).has_value()) << rows << ", " << depth;
    EXPECT_FALSE((*engine)->time_decode(rows, depth).has_value()) << rows << ", " << depth;
  }
  // The only sequence that fits is now wanted for an answer and a score.
  const auto session = (*engine)->new_session();
  ASSERT_TRUE((*engine)->time_decode(2, 60).has_value());
  const auto answer = (*session)->generate(prompt(40), greedy(-1));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_GT((*engine)->compile_time(), Duration::zero());
}

}  // namespace
}  // namespace troika::engine
