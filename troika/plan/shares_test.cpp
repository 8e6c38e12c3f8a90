#include "troika/plan/shares.h"

#include <gtest/gtest.h>

namespace troika::plan {
namespace {

constexpr int64_t kLengths[] = {1, 32, 128};
constexpr int64_t kSingle[] = {1};

std::vector<int64_t> counts(int64_t rows, std::vector<double> shares,
                            std::span<const int64_t> standard) {
  const std::span<const int64_t> lengths[] = {{}, standard};
  std::vector<int64_t> counts;
  for (const Range& range : split_rows(rows, shares, lengths)) {
    counts.push_back(range.end - range.begin);
  }
  return counts;
}

TEST(Shares, OfRowsAreSumsOfStandardLengthsWhereADeviceHasThem) {
  EXPECT_EQ(counts(256, {1, 1}, kLengths), (std::vector<int64_t>{128, 128}));
  EXPECT_EQ(counts(256, {0.3, 0.7}, kLengths), (std::vector<int64_t>{96, 160}));
  EXPECT_EQ(counts(20, {0.5, 0.5}, kLengths), (std::vector<int64_t>{20, 0}));
}

TEST(Shares, OfRowsAreNeverAFewSingleOnesBesideLongerLengths) {
  for (int64_t rows = 2; rows < 300; ++rows) {
    const int64_t few = counts(rows, {0.9, 0.1}, kLengths)[1];
    EXPECT_TRUE(few == 0 || few == 32) << few << " of " << rows;
  }
  EXPECT_EQ(counts(4, {0.5, 0.5}, kSingle), (std::vector<int64_t>{2, 2}));
}

}  // namespace
}  // namespace troika::plan
