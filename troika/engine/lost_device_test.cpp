// What is left of an answer, and of its trace, when a device is lost in the middle.
#include <gtest/gtest.h>

#include <set>

#include "troika/engine/engine.h"
#include "troika/engine/plan_timer.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

constexpr int64_t kPromptTokens = 20;
constexpr int64_t kBatchRows = 16;
constexpr int64_t kAnswerTokens = 12;

Result<std::unique_ptr<Engine>> open(const std::string& devices) {
  EngineOptions options;
  options.patience = std::chrono::milliseconds(300);
  options.compile_patience = std::chrono::milliseconds(300);
  options.devices = devices;
  if (devices.find(',') != std::string::npos) options.split = "paired:50/50";
  options.check = false;
  options.trace = true;
  options.context = 64;
  options.batch_rows = kBatchRows;
  const auto bytes = model::testing::TinyModel().bytes();
  return Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}),
                        options);
}

std::vector<model::TokenId> prompt() {
  std::vector<model::TokenId> tokens;
  for (model::TokenId i = 0; i < kPromptTokens; ++i) tokens.push_back((i * 37 + 11) % 300);
  return tokens;
}

GenerateOptions greedy() {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = kAnswerTokens;
  options.ignore_eos = true;
  return options;
}

TEST(LostDevice, TextThatWasHeldBackIsReadBeforeTheError) {
  const auto sound = open("cpu@0");
  ASSERT_TRUE(sound.has_value()) << sound.error().message;
  const auto whole = (*(*sound)->new_session())->generate(prompt(), greedy());
  ASSERT_TRUE(whole.has_value());
  // All of the answer may become the stop string, so that none of it is given before the end.
  GenerateOptions options = greedy();
  options.stop = {whole->text + "x"};
  const auto engine = open("faulty:lost@50:cpu@0");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  std::string text;
  const auto broken =
      (*(*engine)->new_session())->generate(prompt(), options, [&](std::string_view piece) {
        text += piece;
        return true;
      });
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().code, ErrorCode::kDeviceFailed);
  EXPECT_FALSE(text.empty());
  EXPECT_LT(text.size(), whole->text.size());
}

TEST(LostDevice, EveryPassOfATraceHasANumberOfItsOwn) {
  const auto engine = open("cpu@0,faulty:lost@40:systolic@0");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto answer = (*(*engine)->new_session())->generate(prompt(), greedy());
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_EQ((*engine)->devices().size(), 1u);
  ASSERT_TRUE((*engine)->use_plan((*engine)->plan()).has_value());
  ASSERT_TRUE((*engine)->time_decode(2, 0).has_value());
  std::set<int64_t> passes;
  int64_t last = 0;
  for (const TraceEvent& event : (*engine)->trace().events) {
    passes.insert(event.pass);
    EXPECT_GE(event.pass, last);
    last = event.pass;
  }
  // The prompt in two pieces, a pass for each token but the last, and two more.
  const auto expected = static_cast<size_t>(2 + kAnswerTokens - 1 + 2);
  EXPECT_EQ(passes.size(), expected);
  EXPECT_EQ(*passes.rbegin(), static_cast<int64_t>(expected) - 1);
}

// Wherever a device is lost: in passes of the plans, or in those of the engine between them.
TEST(LostDevice, PlansThatAreTimedEndWithAnError) {
  constexpr int kLast = 80;
  int failed = 0;
  for (int task = 1; task <= kLast; ++task) {
    SCOPED_TRACE(task);
    const auto engine = open(fmt::format("cpu@0,faulty:lost@{}:systolic@0", task));
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    PlanTimer timer(**engine);
    const plan::RowsBucket bucket = (*engine)->plan().buckets.front();
    for (const int64_t depth : {0, 40, 0}) {
      const auto us = timer.time(bucket, 1, depth);
      if (us) continue;
      EXPECT_EQ(us.error().code, ErrorCode::kDeviceFailed) << us.error().message;
      ++failed;
    }
  }
  EXPECT_GT(failed, kLast / 2);
}

// Nobody waits for it, not even who closes it.
TEST(LostDevice, TheEngineEndsThoughADeviceHangsInAPlanThatIsTimed) {
  const auto engine = open("cpu@0,faulty:hang@5:systolic@0");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  PlanTimer timer(**engine);
  const auto us = timer.time((*engine)->plan().buckets.front(), 1, 0);
  ASSERT_FALSE(us.has_value());
  EXPECT_NE(us.error().message.find("hangs"), std::string::npos) << us.error().message;
}

TEST(LostDevice, ADeviceThatHangsCompilingIsPutAsideAtLoad) {
  const auto two = open("cpu@0,faulty:hang-compile@2:cpu@0");
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_EQ((*two)->devices().size(), 1u);
  EXPECT_TRUE((*(*two)->new_session())->generate(prompt(), greedy()).has_value());
  const auto alone = open("faulty:hang-compile@2:cpu@0");
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().message.find("hangs"), std::string::npos) << alone.error().message;
}

// A static device compiles for a new number of rows.
TEST(LostDevice, ADeviceThatHangsCompilingIsPutAsideBeforeAnAnswer) {
  const auto sound = open("cpu@0");
  ASSERT_TRUE(sound.has_value()) << sound.error().message;
  const auto expected = (*(*sound)->new_session())->generate(prompt(), greedy());
  const auto engine = open("cpu@0,faulty:hang-compile@1:systolic@0");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  ASSERT_EQ((*engine)->devices().size(), 2u);
  const auto answer = (*(*engine)->new_session())->generate(prompt(), greedy());
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->tokens, expected->tokens);
  EXPECT_EQ((*engine)->devices().size(), 1u);
}

}  // namespace
}  // namespace troika::engine
