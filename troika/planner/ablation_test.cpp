#include "troika/planner/ablation.h"

#include <gtest/gtest.h>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

TEST(Ablation, EveryIdeaIsARowAndNoneMakesItSlower) {
  const cost::DescribedCost cost(*soc::find("snapdragon-8-gen-3"));
  const graph::testing::Outline outline("4096,2,32,8,14336,512");
  PassRequest request;
  request.rows = 320;
  request.budget.evaluations = 150;
  const auto rows = ablation(outline.graph, cost, request);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  ASSERT_EQ(rows->size(), 8u);
  EXPECT_EQ(rows->front().name, "layer");
  EXPECT_EQ(rows->back().name, "+ trace-guided");
  for (size_t i = 1; i < rows->size(); ++i) EXPECT_GE((*rows)[i].gain, 0.999) << (*rows)[i].name;
  // The operand held in place matters on this chip, and so does fast synchronization.
  EXPECT_GT((*rows)[2].gain, 1.1);
  EXPECT_GT((*rows)[5].gain, 1.01);
}

}  // namespace
}  // namespace troika::planner
