// Ctrl-C while an engine is made, or makes another plan.
#include <gtest/gtest.h>

#include "troika/engine/engine.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

Result<std::unique_ptr<Engine>> open(const std::function<bool()>& cancelled) {
  EngineOptions options;
  options.devices = "cpu@0,systolic@0";
  options.force_all = true;
  options.check = false;
  options.context = 64;
  options.batch_rows = 16;
  options.cancelled = cancelled;
  const auto bytes = model::testing::TinyModel().bytes();
  return Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}),
                        options);
}

std::vector<model::TokenId> prompt() {
  std::vector<model::TokenId> tokens;
  for (model::TokenId i = 0; i < 20; ++i) tokens.push_back((i * 37 + 11) % 300);
  return tokens;
}

GenerateOptions greedy() {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = 12;
  options.ignore_eos = true;
  return options;
}

TEST(Cancelled, LoadingEndsWhereverItIs) {
  int asked = 0;
  ASSERT_TRUE(open([&] { return ++asked < 0; }).has_value());
  // How often depends on how long measuring takes, but not below this.
  ASSERT_GT(asked, 20);
  for (const int after : {0, 1, 5, 20}) {
    asked = 0;
    const auto engine = open([&] { return ++asked > after; });
    ASSERT_FALSE(engine.has_value()) << after;
    EXPECT_EQ(engine.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(asked, after + 1);
  }
}

TEST(Cancelled, ASessionGoesOnAfterItsDevicesWereNotPrepared) {
  bool cancelled = false;
  const auto engine = open([&] { return cancelled; });
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto session = (*engine)->new_session();
  const auto expected = (*session)->generate(prompt(), greedy());
  ASSERT_TRUE(expected.has_value());
  // Another plan has to be made in the middle of an answer.
  const auto stopped = (*session)->generate(prompt(), greedy(), [&](std::string_view) {
    if (!std::exchange(cancelled, true)) {
      (*engine)->devices()[1]->abandon({ErrorCode::kDeviceFailed, "pulled out"});
    }
    return true;
  });
  ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_EQ(stopped->finish_reason, FinishReason::kCancelled);
  EXPECT_FALSE(stopped->tokens.empty());
  EXPECT_LT(stopped->tokens.size(), expected->tokens.size());
  EXPECT_TRUE(std::equal(stopped->tokens.begin(), stopped->tokens.end(), expected->tokens.begin()));
  const auto unprepared = (*session)->generate(prompt(), greedy());
  ASSERT_TRUE(unprepared.has_value()) << unprepared.error().message;
  EXPECT_EQ(unprepared->finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(unprepared->tokens.empty());
  cancelled = false;
  const auto again = (*session)->generate(prompt(), greedy());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->tokens, expected->tokens);
}

TEST(Cancelled, AnAnswerEndsSoonThoughADeviceHangs) {
  // Ctrl-C comes when a pass has lasted for some looks: that of the task that hangs.
  bool armed = false;
  int looks = 0;
  EngineOptions options;
  options.devices = "cpu@0,faulty:hang@150:systolic@0";
  options.split = "paired:50/50";
  options.check = false;
  options.context = 300;
  options.batch_rows = 32;
  options.patience = std::chrono::minutes(2);
  options.cancelled = [&] { return armed && ++looks > 10; };
  std::string warning;
  options.warn = [&](const std::string& line) { warning = line; };
  const auto bytes = model::testing::TinyModel().bytes();
  const auto engine =
      Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}), options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const auto session = (*engine)->new_session();
  GenerateOptions generate = greedy();
  generate.max_tokens = 250;
  const TimePoint start = system_clock().now();
  const auto stopped = (*session)->generate(prompt(), generate, [&](std::string_view) {
    armed = true;
    looks = 0;
    return true;
  });
  ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_EQ(stopped->finish_reason, FinishReason::kCancelled);
  EXPECT_FALSE(stopped->tokens.empty());
  EXPECT_NE(warning.find("hangs"), std::string::npos) << warning;
  EXPECT_LT(system_clock().now() - start, std::chrono::minutes(1));
  // The device that hung is out; the others go on.
  armed = false;
  const auto again = (*session)->generate(prompt(), greedy());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ((*engine)->devices().size(), 1u);
}

}  // namespace
}  // namespace troika::engine
