#include "troika/device/cpu/team.h"

#include <gtest/gtest.h>

#include <numeric>

namespace troika::device::cpu {
namespace {

class TeamSizes : public ::testing::TestWithParam<int> {};

TEST_P(TeamSizes, EveryMemberRunsOnce) {
  Team team(GetParam(), {});
  for (int round = 0; round < 300; ++round) {
    std::vector<int> runs(static_cast<size_t>(GetParam()), 0);
    team.run([&](int member) { ++runs[static_cast<size_t>(member)]; });
    EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(GetParam()), 1));
  }
}

TEST_P(TeamSizes, BarrierMakesEarlierWritesVisible) {
  Team team(GetParam(), {});
  const auto size = static_cast<size_t>(GetParam());
  std::vector<int> first(size);
  std::vector<int> sums(size);
  for (int round = 1; round <= 300; ++round) {
    team.run([&](int member) {
      first[static_cast<size_t>(member)] = round;
      team.barrier();
      sums[static_cast<size_t>(member)] = std::accumulate(first.begin(), first.end(), 0);
    });
    EXPECT_EQ(sums, std::vector<int>(size, round * GetParam()));
  }
}

TEST_P(TeamSizes, ChunksAreClaimedOnceBetweenBarriers) {
  Team team(GetParam(), {});
  constexpr int64_t kChunks = 100;
  std::vector<int> first(kChunks, 0);
  std::vector<int> second(kChunks, 0);
  for (int round = 1; round <= 50; ++round) {
    team.run([&](int) {
      for (int64_t c = team.claim_chunk(); c < kChunks; c = team.claim_chunk()) {
        ++first[static_cast<size_t>(c)];
      }
      team.barrier();
      for (int64_t c = team.claim_chunk(); c < kChunks; c = team.claim_chunk()) {
        ++second[static_cast<size_t>(c)];
      }
    });
    EXPECT_EQ(first, std::vector<int>(kChunks, round));
    EXPECT_EQ(second, first);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamSizes, ::testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace troika::device::cpu
