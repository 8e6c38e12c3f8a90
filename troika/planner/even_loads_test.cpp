#include "troika/planner/even_loads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "troika/cost/described_cost.h"
#include "troika/graph/testing/outline.h"
#include "troika/soc/catalogue.h"

namespace troika::planner {
namespace {

TEST(EvenShares, AllEndTogether) {
  // 10 + 30 a = 40 b: a = 30 / 70.
  const std::vector<double> shares = even_shares({10, 0}, {30, 40});
  EXPECT_NEAR(shares[0], 3.0 / 7, 1e-9);
  EXPECT_NEAR(shares[1], 4.0 / 7, 1e-9);
}

TEST(EvenShares, WhoHasEnoughToDoGetsNothing) {
  const std::vector<double> shares = even_shares({100, 0, 0}, {10, 20, HUGE_VAL});
  EXPECT_EQ(shares, (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(even_shares({0, 0}, {HUGE_VAL, HUGE_VAL}), (std::vector<double>{0, 0}));
}

// The GPU of this chip has the attention, too, so it gets less of the products than by its speed.
TEST(EvenLoads, StartsFromWhatTheHomeHasToDoBesides) {
  const graph::testing::Outline outline("2048,4,16,8,5632,2048");
  const cost::DescribedCost cost(*soc::find("ryzen-ai-7-350"));
  PassRequest request;
  request.rows = 1024;
  request.weight_bits = 4;
  request.activation_bits = 16;
  const PassSpace space = *PassSpace::create(outline.graph, cost, request);
  const Strategy strategy = *strategy_from("troika");
  const std::vector<Candidate> all = even_candidates(space, strategy, 256);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, "even");
  EXPECT_EQ(all[1].name, "even, paired");
  const size_t npu = space.device("npu");
  for (size_t g = 0; g < space.groups().size(); ++g) {
    if (space.is_head(space.groups()[g])) continue;
    const Choice choice = space.choice(all[0].bucket, g);
    ASSERT_EQ(choice.devices.size(), 2u);
    const double share = choice.shares[choice.devices[0] == npu ? 0 : 1];
    EXPECT_GT(share, 9.6 / (9.6 + 0.76 * 4.6));
    EXPECT_LT(share, 1);
  }
  // All but one product are whole.
  for (const size_t i : {2, 3}) {
    int divided = 0;
    for (size_t g = 0; g < space.groups().size(); ++g) {
      if (space.is_head(space.groups()[g])) continue;
      divided += space.choice(all[i].bucket, g).devices.size() > 1 ? 1 : 0;
    }
    EXPECT_EQ(divided, 1) << all[i].name;
    EXPECT_EQ(all[i].name.substr(0, 12), "even but for");
  }
}

}  // namespace
}  // namespace troika::planner
