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

TEST(Shares, OfHeadsCountWhatAttentionCosts) {
  const double shares[] = {0.53, 0.47};
  // Nine query heads and three KV heads: with k and v of two, the first has too much of the
  // products with five query heads, and too little of all with four once attention is counted.
  EXPECT_EQ(split_heads(9, 3, 1, 0, shares).query.front(), (Range{0, 4}));
  EXPECT_EQ(split_heads(9, 3, 1, 0.9, shares).query.front(), (Range{0, 5}));
  EXPECT_EQ(split_heads(9, 3, 1, 0.9, shares).kv.front(), (Range{0, 2}));
  EXPECT_EQ(split_heads(9, 3, 1, 0.9, shares).query.back(), (Range{5, 9}));
}

}  // namespace
}  // namespace troika::plan
