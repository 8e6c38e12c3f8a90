#include "troika/engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace troika::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SamplerOptions plain() {
  SamplerOptions options;
  options.temperature = 1.0f;
  options.top_k = 0;
  options.top_p = 1.0f;
  options.min_p = 0.0f;
  return options;
}

// How often each token is drawn.
std::map<model::TokenId, int> draw(const SamplerOptions& options, std::vector<float> logits,
                                   int count = 20000) {
  Sampler sampler(options);
  std::map<model::TokenId, int> out;
  for (int i = 0; i < count; ++i) ++out[sampler.sample(logits).value()];
  return out;
}

std::vector<model::TokenId> drawn(const SamplerOptions& options, const std::vector<float>& logits,
                                  int count = 4000) {
  std::vector<model::TokenId> out;
  for (const auto& [id, times] : draw(options, logits, count)) out.push_back(id);
  return out;
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheBest) {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, 3, 2, 3}).value(), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{0.0f, -0.0f}).value(), 0);
  EXPECT_EQ(sampler.sample(std::vector<float>{-5}).value(), 0);
}

TEST(Sampler, DrawsByProbability) {
  const auto counts = draw(plain(), logs({0.5, 0.2, 0.2, 0.1}));
  EXPECT_NEAR(counts.at(0), 10000, 300);
  EXPECT_NEAR(counts.at(1), 4000, 250);
  EXPECT_NEAR(counts.at(2), 4000, 250);
  EXPECT_NEAR(counts.at(3), 2000, 200);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  SamplerOptions options = plain();
  options.temperature = 0.5f;  // squares the odds: 16 to 1
  EXPECT_NEAR(draw(options, logs({0.8, 0.2})).at(1), 20000 / 17.0, 150);
  options.temperature = 2.0f;  // takes their root: 2 to 1
  EXPECT_NEAR(draw(options, logs({0.8, 0.2})).at(1), 20000 / 3.0, 300);
  options.temperature = 1e-30f;
  EXPECT_THAT(drawn(options, {1, 2, 1.99f}), ElementsAre(1));
}

TEST(Sampler, EachFilterKeepsWhatItShould) {
  const std::vector<float> logits = logs({0.1, 0.4, 0.3, 0.15, 0.05});
  SamplerOptions options = plain();
  options.top_k = 2;
  EXPECT_THAT(drawn(options, logits), ElementsAre(1, 2));
  options = plain();
  options.top_p = 0.75f;  // 0.4 + 0.3 is not enough
  EXPECT_THAT(drawn(options, logits), ElementsAre(1, 2, 3));
  options.top_p = 0.65f;
  EXPECT_THAT(drawn(options, logits), ElementsAre(1, 2));
  options = plain();
  options.min_p = 0.3f;  // of 0.4: at least 0.12
  EXPECT_THAT(drawn(options, logits), ElementsAre(1, 2, 3));
  options = plain();
  options.top_k = 1;
  EXPECT_THAT(drawn(options, {2, 2, 2}), ElementsAre(0));
}

// top-p counts probabilities among what top-k left: 0.4 of 0.7 is above one half.
TEST(Sampler, FiltersRunInOrder) {
  SamplerOptions options = plain();
  options.top_k = 2;
  options.top_p = 0.55f;
  EXPECT_THAT(drawn(options, logs({0.1, 0.4, 0.3, 0.15, 0.05})), ElementsAre(1));
}

// The filters see temperature 1: a high temperature does not let more tokens through.
TEST(Sampler, TemperatureComesAfterTheFilters) {
  SamplerOptions options = plain();
  options.temperature = 50.0f;
  options.min_p = 0.5f;
  EXPECT_THAT(drawn(options, logs({0.5, 0.3, 0.2})), ElementsAre(0, 1));
}

// Large flat distributions reach past the part that is sorted first.
TEST(Sampler, TopPOfALargeFlatDistribution) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i) * 1e-4f;
  SamplerOptions options = plain();
  options.top_p = 0.5f;
  const auto ids = drawn(options, logits);
  EXPECT_GE(ids.front(), 500);
  EXPECT_LE(ids.front(), 530);
  EXPECT_GT(ids.size(), 460U);
}

TEST(Sampler, RepeatPenaltyCountsTheLastTokens) {
  SamplerOptions options;
  options.temperature = 0;
  options.repeat_penalty = 2.0f;
  options.repeat_last_n = 2;
  Sampler sampler(options);
  const std::vector<float> logits = {4, 3, -1};
  EXPECT_EQ(sampler.sample(logits).value(), 0);
  sampler.accept(0);
  EXPECT_EQ(sampler.sample(logits).value(), 1);  // 4 / 2 < 3
  sampler.accept(1);
  EXPECT_EQ(sampler.sample(logits).value(), 0);  // 2 > 1.5
  sampler.accept(2);
  EXPECT_EQ(sampler.sample(logits).value(), 0);                             // 0 is forgotten: 4
  EXPECT_EQ(sampler.sample(std::vector<float>{-3, -2.5f, -2}).value(), 0);  // -3, -5, -4
}

TEST(Sampler, TokensOutsideOfTheLogitsDoNotMatter) {
  SamplerOptions options;
  options.temperature = 0;
  options.repeat_penalty = 2.0f;
  Sampler sampler(options);
  sampler.accept(-1);
  sampler.accept(1000000);
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2}).value(), 1);
}

// Fixed numbers: they may not change with the compiler, the standard library or the platform.
TEST(Sampler, ASeedGivesTheSameTokensEverywhere) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 37) % 100) / 16.0f;
  }
  const auto tokens = [&](uint64_t seed) {
    SamplerOptions options;
    options.seed = seed;
    Sampler sampler(options);
    std::vector<model::TokenId> out;
    for (int i = 0; i < 8; ++i) out.push_back(sampler.sample(logits).value());
    return out;
  };
  EXPECT_EQ(tokens(1), tokens(1));
  EXPECT_NE(tokens(1), tokens(2));
  EXPECT_THAT(tokens(42), ElementsAre(54, 62, 51, 75, 64, 32, 78, 40));
}

TEST(Sampler, ExponentialIsExactEnoughAndHasFixedBits) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double x = -700.0 * static_cast<double>(random()) / 4294967296.0;
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 4e-16) << x;
  }
  EXPECT_EQ(portable_exp(0), 1.0);
  EXPECT_EQ(portable_exp(-1e300), 0.0);
  EXPECT_EQ(portable_exp(-1), 0x1.78b56362cef38p-2);
}

TEST(Sampler, NumbersThatAreNotFiniteAreAnError) {
  Sampler sampler(plain());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  const auto token = sampler.sample(std::vector<float>{1, nan, -infinite, infinite, 2});
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().code, ErrorCode::kInvalidData);
  EXPECT_THAT(token.error().message, HasSubstr("3 of 5"));
  EXPECT_FALSE(sampler.sample({}));
  EXPECT_TRUE(sampler.sample(std::vector<float>{3e38f, -3e38f}));
}

TEST(Sampler, OptionsAreChecked) {
  EXPECT_TRUE(check(SamplerOptions{}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](auto set, std::string_view flag) {
    SamplerOptions options;
    set(options);
    const Status status = check(options);
    ASSERT_FALSE(status) << flag;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr(std::string(flag)));
  };
  refused([&](SamplerOptions& o) { o.temperature = nan; }, "--temp nan");
  refused([](SamplerOptions& o) { o.temperature = -1; }, "--temp -1");
  refused([](SamplerOptions& o) { o.top_k = -2; }, "--top-k -2");
  refused([](SamplerOptions& o) { o.top_p = 1.5f; }, "--top-p 1.5");
  refused([&](SamplerOptions& o) { o.top_p = nan; }, "--top-p nan");
  refused([](SamplerOptions& o) { o.min_p = -0.5f; }, "--min-p -0.5");
  refused([](SamplerOptions& o) { o.repeat_penalty = 0; }, "--repeat-penalty 0");
  refused([](SamplerOptions& o) { o.repeat_last_n = -2; }, "--repeat-last-n -2");
}

TEST(TopLogprobs, GivesTheFullDistribution) {
  const auto top = top_logprobs(logs({0.1, 0.4, 0.1, 0.4}), 3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 3);
  EXPECT_EQ(top[2].id, 0);
  EXPECT_NEAR(top[0].logprob, std::log(0.4), 1e-7);
  EXPECT_NEAR(top[2].logprob, std::log(0.1), 1e-7);
  EXPECT_EQ(top_logprobs(logs({0.5, 0.5}), 10).size(), 2U);
  EXPECT_TRUE(top_logprobs(logs({0.5, 0.5}), 0).empty());
}

TEST(TopLogprobs, LargeLogitsDoNotOverflow) {
  const auto top = top_logprobs(std::vector<float>{1e30f, 1e30f, -1e30f}, 3);
  EXPECT_NEAR(top[0].logprob, -std::log(2.0), 1e-12);
  EXPECT_LT(top[2].logprob, -1e30);
}

}  // namespace
}  // namespace troika::engine
