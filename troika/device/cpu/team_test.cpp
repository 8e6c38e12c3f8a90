#include "troika/device/cpu/team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace troika::device::cpu {
namespace {

class TeamSizes : public ::testing::TestWithParam<int> {};

TEST_P(TeamSizes, EveryChunkOfEveryStepRunsOnce) {
  Team team(GetParam(), {});
  const std::vector<int64_t> chunks = {100, 0, 1, 7};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<int>> runs;
    for (const int64_t count : chunks) runs.emplace_back(count, 0);
    team.run(chunks, [&](int member, int step, int64_t chunk) {
      ASSERT_GE(member, 0);
      ASSERT_LT(member, GetParam());
      ++runs[static_cast<size_t>(step)][static_cast<size_t>(chunk)];
    });
    for (size_t step = 0; step < chunks.size(); ++step) {
      EXPECT_EQ(runs[step], std::vector<int>(static_cast<size_t>(chunks[step]), 1));
    }
  }
}

TEST_P(TeamSizes, AStepSeesAllThatTheOneBeforeItWrote) {
  Team team(GetParam(), {});
  constexpr int kSteps = 40;  // more than one part of a run
  constexpr size_t kChunks = 5;
  const std::vector<int64_t> chunks(kSteps, kChunks);
  for (int round = 1; round <= 100; ++round) {
    std::vector<std::vector<int>> written(kSteps, std::vector<int>(kChunks, 0));
    team.run(chunks, [&](int, int step, int64_t chunk) {
      const auto s = static_cast<size_t>(step);
      const int before =
          s == 0 ? round
                 : std::accumulate(written[s - 1].begin(), written[s - 1].end(), 0) / int{kChunks};
      written[s][static_cast<size_t>(chunk)] = before;
    });
    EXPECT_EQ(written.back(), std::vector<int>(kChunks, round));
  }
}

TEST_P(TeamSizes, AMemberNeverRunsTwoChunksAtOnce) {
  Team team(GetParam(), {});
  std::vector<std::atomic<int>> busy(static_cast<size_t>(GetParam()));
  const std::vector<int64_t> chunks(3, 200);
  team.run(chunks, [&](int member, int, int64_t) {
    EXPECT_EQ(busy[static_cast<size_t>(member)].fetch_add(1), 0);
    busy[static_cast<size_t>(member)].fetch_sub(1);
  });
}

TEST_P(TeamSizes, WorksAfterAPauseInWhichItsMembersSleep) {
  Team team(GetParam(), {});
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> runs{0};
    const std::vector<int64_t> chunks = {50};
    team.run(chunks, [&](int, int, int64_t) { ++runs; });
    EXPECT_EQ(runs, 50);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamSizes, ::testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace troika::device::cpu
