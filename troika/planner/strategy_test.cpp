#include "troika/planner/strategy.h"

#include <gtest/gtest.h>

namespace troika::planner {
namespace {

TEST(Strategy, LongPassesMayHaveTwiceAsManyChunks) {
  const auto troika = strategy_from("troika");
  ASSERT_TRUE(troika.has_value());
  EXPECT_EQ(troika->most_chunks_for(512), 8);
  EXPECT_EQ(troika->most_chunks_for(2047), 8);
  EXPECT_EQ(troika->most_chunks_for(2304), 9);
  EXPECT_EQ(troika->most_chunks_for(4096), 16);
  EXPECT_EQ(troika->most_chunks_for(16384), 16);
}

TEST(Strategy, OthersMayNot) {
  for (const auto& [name, most] : {std::pair{"heteromosaic", 8}, {"heteroinfer", 1}}) {
    const auto strategy = strategy_from(name);
    ASSERT_TRUE(strategy.has_value()) << name;
    EXPECT_EQ(strategy->most_chunks_for(16384), most) << name;
  }
}

}  // namespace
}  // namespace troika::planner
