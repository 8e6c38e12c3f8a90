#include "troika/plan/default_plan.h"

#include <gtest/gtest.h>

#include "troika/model/testing/tiny_model.h"

namespace troika::plan {
namespace {

std::string refusal(std::string_view rule, size_t n_devices = 2) {
  const auto split = parse_split(rule, n_devices);
  if (split) return "";
  EXPECT_EQ(split.error().code, ErrorCode::kInvalidArgument);
  return split.error().message;
}

TEST(SplitRule, GivesAPhaseOrBoth) {
  const auto both = parse_split("k-cut:3/1", 2);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->prefill->cut, Cut::kK);
  EXPECT_EQ(both->decode->shares, (std::vector<double>{3, 1}));
  const auto one = parse_split("decode=none", 2);
  ASSERT_TRUE(one.has_value());
  EXPECT_FALSE(one->prefill.has_value());
  EXPECT_TRUE(one->decode->shares.empty());
}

TEST(SplitRule, NamesWhatCannotBeMeant) {
  for (const char* rule : {"", "cut", "paired,", "paired ", "=paired", "decode", "first=paired"}) {
    EXPECT_FALSE(refusal(rule).empty()) << rule;
  }
  for (const char* share : {"", "0", "-1", "nan", "inf", "1e400", "1000001", "1 ", "0x1"}) {
    EXPECT_NE(refusal(fmt::format("paired:1/{}", share)).find("is not a number"), std::string::npos)
        << share;
  }
  EXPECT_NE(refusal("paired:1/1/1").find("3 shares for 2 devices"), std::string::npos);
  EXPECT_NE(refusal("paired,none").find("prefill is given twice"), std::string::npos);
  EXPECT_NE(refusal("paired:1e-300/1").find("less than a millionth"), std::string::npos);
  EXPECT_NE(refusal("paired:1/1000000").find("less than a millionth"), std::string::npos);
}

// However far apart shares and rates are, the plan is one that can be run.
TEST(DefaultPlan, IsSoundWithTheLeastSharesAndRates) {
  const auto bytes = model::testing::TinyModel().bytes();
  const model::Model model = *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  const graph::Graph graph = *graph::build(model);
  std::vector<device::DeviceInfo> infos(2);
  infos[0].name = fmt::format("{}", 'a');
  infos[1].name = fmt::format("{}", 'b');
  DefaultPlanOptions options;
  options.max_rows = 512;
  const auto sound = [&](const std::vector<DeviceRates>& rates) {
    const Status status = check(default_plan(graph, infos, rates, options), graph);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(sound({{1, 1}, {1e15, 1e15}}), "");
  EXPECT_EQ(sound({{1e15, 1}, {1, 1e15}}), "");
  for (const char* rule : {"paired:1/999999", "hybrid:0.3/299999.7", "k-cut:999999/1"}) {
    options.split = *parse_split(rule, 2);
    EXPECT_EQ(sound({{1, 1}, {1, 1}}), "") << rule;
  }
}

// Not where the user says who gets how much.
TEST(DefaultPlan, CutsTheAttentionOfOneRowOnlyWhereThatSavesATenth) {
  const auto bytes = model::testing::TinyModel().bytes();
  const model::Model model = *model::Model::load(*model::memory_source(bytes), "tiny.gguf", {});
  const graph::Graph graph = *graph::build(model);
  std::vector<device::DeviceInfo> infos(2);
  infos[0].name = std::string("a");
  infos[1].name = std::string("b");
  DefaultPlanOptions options;
  options.max_rows = 512;
  const auto attention_of_one_row = [&](double fast) {
    const std::vector<DeviceRates> rates = {{1, 1, fast, 1, 1}, {1, 1, 1, 1, 1}};
    const Plan plan = default_plan(graph, infos, rates, options);
    EXPECT_TRUE(check(plan, graph).has_value());
    for (const Placement& placement : plan.buckets.front().placements) {
      if (placement.stage == graph::Stage::kG2) {
        EXPECT_EQ(placement.cut, Cut::kPaired);
      }
      if (placement.stage == graph::Stage::kAttention) return placement;
    }
    return Placement();
  };
  EXPECT_EQ(attention_of_one_row(4).cut, Cut::kPaired);
  const Placement whole = attention_of_one_row(12);
  EXPECT_EQ(whole.cut, Cut::kNone);
  ASSERT_EQ(whole.parts.size(), 1u);
  EXPECT_EQ(whole.parts[0].device, "a");
  options.split = *parse_split("paired:4/1", 2);
  EXPECT_EQ(attention_of_one_row(4).cut, Cut::kPaired);
}

}  // namespace
}  // namespace troika::plan
