#include "troika/reproduce/comparison.h"

#include <gtest/gtest.h>

#include "troika/planner/operator_plan.h"
#include "troika/published/catalogue.h"
#include "troika/reproduce/case_value.h"
#include "troika/soc/catalogue.h"

namespace troika::reproduce {
namespace {

using published::Case;
using published::Metric;
using published::Paper;

Case figure(Metric metric, double published) {
  Case one;
  one.name = "one";
  one.metric = metric;
  one.published = published;
  one.input.soc = "snapdragon-8-gen-3";
  one.input.strategy = "single:gpu";
  one.input.shapes = {"tiny"};
  one.input.prompts = {64};
  return one;
}

Runs described() {
  return Runs([](std::string_view name) { return soc::find(name); });
}

TEST(ErrorPct, IsRelativeInPointsOrBesideARange) {
  EXPECT_DOUBLE_EQ(error_pct(figure(Metric::kTtftS, 2), 2.5), 25);
  EXPECT_DOUBLE_EQ(error_pct(figure(Metric::kTtftS, 2), 1), -50);
  EXPECT_NEAR(error_pct(figure(Metric::kProductShare, 0.2), 0.25), 5, 1e-9);
  EXPECT_NEAR(error_pct(figure(Metric::kEnergySaving, 55), 50), -5, 1e-9);
  Case range = figure(Metric::kTtftS, 2);
  range.published_to = 4;
  EXPECT_EQ(error_pct(range, 3), 0);
  EXPECT_DOUBLE_EQ(error_pct(range, 5), 25);
  EXPECT_DOUBLE_EQ(error_pct(range, 1), -50);
}

TEST(StrategyOf, KnowsTheStepsOfAblations) {
  const auto naive = strategy_of("step:naive");
  ASSERT_TRUE(naive.has_value());
  EXPECT_TRUE(naive->static_only);
  EXPECT_FALSE(naive->operand_order);
  const auto rows = strategy_of("step:activation-centric");
  ASSERT_TRUE(rows.has_value());
  EXPECT_TRUE(rows->cut_rows && !rows->cut_outputs && !rows->operand_order);
  const auto order = strategy_of("step:operand-order");
  ASSERT_TRUE(order.has_value());
  EXPECT_TRUE(order->cut_rows && !order->cut_outputs && order->operand_order);
  EXPECT_EQ(strategy_of("step:unchunked")->most_chunks, 1);
  EXPECT_TRUE(strategy_of("troika").has_value());
  EXPECT_NE(strategy_of("step:all").error().message.find("steps: naive"), std::string::npos);
  EXPECT_FALSE(strategy_of("all").has_value());
}

// No pass is simulated here.
TEST(Catalogue, CasesNameWhatThereIs) {
  const auto papers = published::find("all");
  ASSERT_TRUE(papers.has_value());
  Runs runs = described();
  for (const Paper& paper : *papers) {
    for (const Case& one : paper.cases) {
      for (const published::Run* run : {&one.input, one.against ? &*one.against : nullptr}) {
        if (run == nullptr) continue;
        const auto chip = runs.chip(*run);
        ASSERT_TRUE(chip.has_value()) << one.name << ": " << chip.error().message;
        if (!run->strategy.empty()) {
          EXPECT_TRUE(strategy_of(run->strategy).has_value()) << one.name;
        }
        for (const std::string& unit : run->units) {
          EXPECT_TRUE((*chip)->soc().unit(unit).has_value()) << one.name << ": " << unit;
        }
        if (!run->unit.empty()) {
          EXPECT_TRUE((*chip)->soc().unit(run->unit).has_value()) << one.name;
        }
        for (const std::string& shape : run->shapes) {
          EXPECT_TRUE(runs.model(shape).has_value()) << one.name << ": " << shape;
        }
      }
    }
  }
}

TEST(Simulated, OfAProductIsWhatThePlannerSays) {
  Case one = figure(Metric::kOperatorUs, 1);
  one.input.outputs = 4096;
  one.input.inputs = 14336;
  one.input.tokens = 256;
  Runs runs = described();
  const auto value = simulated(one, runs);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  const auto work = (*runs.chip(one.input))->product(1, {256, 4096, 14336});
  ASSERT_TRUE(work.has_value());
  EXPECT_DOUBLE_EQ(*value, work->fixed_us + work->work_us());
  one.metric = Metric::kOperatorShare;
  one.input.unit = "npu";
  EXPECT_EQ(*simulated(one, runs), 0);
  one.input.unit = "gpu";
  EXPECT_EQ(*simulated(one, runs), 1);
}

TEST(Simulated, OfPassesAgreesWithTheForecast) {
  Runs runs = described();
  const auto model = forecast::shaped_model("tiny");
  ASSERT_TRUE(model.has_value());
  Case one = figure(Metric::kTtftS, 1);
  one.input.strategy = "heteroinfer";
  one.input.output = 1;
  forecast::Question question;
  question.prompt = 64;
  question.generate = 1;
  question.strategy = "heteroinfer";
  const auto answer = forecast::forecast(*model, **runs.chip(one.input), question);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_NEAR(*simulated(one, runs) * 1e3, answer->ttft_ms, 1e-9);
  one.metric = Metric::kDecodeTokS;
  EXPECT_NEAR(*simulated(one, runs), answer->decode_tok_s, 1e-6 * answer->decode_tok_s);
  one.metric = Metric::kPrefillPowerW;
  EXPECT_NEAR(*simulated(one, runs), answer->prefill_power_w, 1e-9);
}

TEST(Simulated, OverSeveralPromptsIsTheMeanOrTheGreatest) {
  Runs runs = described();
  Case one = figure(Metric::kPrefillTokS, 1);
  const auto at = [&](int64_t prompt) {
    one.input.prompts = {prompt};
    return *simulated(one, runs);
  };
  const double a = at(32);
  const double b = at(128);
  one.input.prompts = {32, 128};
  EXPECT_DOUBLE_EQ(*simulated(one, runs), (a + b) / 2);
  one.metric = Metric::kPrefillTokSPeak;
  EXPECT_DOUBLE_EQ(*simulated(one, runs), std::max(a, b));
}

TEST(Simulated, SharesOfProductsAddUp) {
  Runs runs = described();
  Case one = figure(Metric::kProductShare, 1);
  one.input.strategy = "step:unchunked";
  double sum = 0;
  for (const char* unit : {"cpu", "gpu", "npu"}) {
    one.input.unit = unit;
    sum += *simulated(one, runs);
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(Simulated, AgainstALoadItTakesLonger) {
  Runs runs = described();
  Case one = figure(Metric::kPrefillGain, 1);
  one.against = one.input;
  EXPECT_DOUBLE_EQ(*simulated(one, runs), 1);
  one.against->load = published::Load{"gpu", 0.5, 0};
  EXPECT_GT(*simulated(one, runs), 1.05);
  one.against->load->unit = "none";
  EXPECT_FALSE(simulated(one, runs).has_value());
}

TEST(Compare, CountsWhatCalibratesAndWhatValidates) {
  Paper paper;
  paper.name = "some";
  for (const char* name : {"a", "b", "c", "d"}) {
    Case one = figure(Metric::kMemoryGbps, 43.3);
    one.input.units = {"gpu"};
    one.name = name;
    paper.cases.push_back(one);
  }
  paper.cases[0].calibrated = true;
  paper.cases[1].published = 43.3 / 2;
  paper.cases[2].described = true;
  paper.cases[3].left_out = "because";
  Runs runs = described();
  CompareOptions options;
  options.threads = 2;
  const auto comparison = compare({paper}, runs, options);
  ASSERT_TRUE(comparison.has_value()) << comparison.error().message;
  EXPECT_EQ(comparison->calibration.count, 1);
  EXPECT_EQ(comparison->validation.count, 1);
  EXPECT_EQ(comparison->validation.above_25, 1);
  EXPECT_NEAR(comparison->validation.mean_pct, 100, 1e-9);
  EXPECT_FALSE(comparison->rows[3].simulated.has_value());
  options.only_calibrated = true;
  EXPECT_EQ(compare({paper}, runs, options)->rows.size(), 1u);
}

TEST(Compare, SaysWhichCaseCannotBeAndStopsWhenAsked) {
  Paper paper;
  paper.name = "some";
  paper.cases = {figure(Metric::kTtftS, 1)};
  paper.cases[0].input.soc = "no-such-chip";
  Runs runs = described();
  const auto unknown = compare({paper}, runs, {});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("some one: "), std::string::npos);
  paper.cases[0].input.soc = "snapdragon-8-gen-3";
  CompareOptions options;
  options.progress = [](size_t, size_t) { return false; };
  EXPECT_EQ(compare({paper}, runs, options).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace troika::reproduce
