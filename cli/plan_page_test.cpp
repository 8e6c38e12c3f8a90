// The page of a plan: that it needs nothing else, draws every cut, and keeps texts texts.
#include "cli/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "</style><script>alert(1)</script><!--<b>&amp;\" ]]>";

std::string page_of(const std::string& name) {
  const cost::DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const graph::testing::Outline outline("256,4,8,2,704,1000");
  planner::ModelRequest request;
  request.rows = {1};
  request.max_rows = 300;
  request.pass.weight_bits = 4;
  request.pass.integer_activations = true;
  request.pass.budget.evaluations = 200;
  const auto plan =
      planner::plan_model(outline.graph, cost, *planner::strategy_from("troika"), request);
  EXPECT_TRUE(plan.has_value());
  return plan_page({name, name, true, name, name, 0, cost, *plan});
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(PlanPage, NeedsNothingFromElsewhere) {
  const std::string page = page_of("chip");
  for (const char* part :
       {"http:", "https:", "//cdn", "src=", "@import", "url(", "<script", "<link", "<iframe"}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
}

TEST(PlanPage, ShowsEveryPassAndCut) {
  const std::string page = page_of("chip");
  EXPECT_THAT(page, HasSubstr("<h2>decode: "));
  EXPECT_THAT(page, HasSubstr("<h2>300 rows: "));
  EXPECT_THAT(page, HasSubstr("forecast from a description, not measured"));
  EXPECT_THAT(page, HasSubstr(" alternatives</summary>"));
  EXPECT_GE(count(page, "<svg "), 10u);
  EXPECT_EQ(count(page, "<svg "), count(page, "</svg>"));
  EXPECT_EQ(count(page, "<div"), count(page, "</div>"));
  EXPECT_EQ(count(page, "<table"), count(page, "</table>"));
  EXPECT_GE(count(page, "<rect "), count(page, "<svg "));
}

TEST(PlanPage, TextsStayTexts) {
  const std::string page = page_of(kHostile);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_EQ(count(page, "</style>"), 1u);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
}

}  // namespace
}  // namespace troika::cli
