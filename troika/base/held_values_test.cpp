#include "troika/base/held_values.h"

#include <gtest/gtest.h>

#include <string>

namespace troika {
namespace {

TEST(HeldValues, LiveAsLongAsSomebodyHoldsThem) {
  HeldValues<std::string, const int64_t> values;
  const auto sum = [&] { return values.total([](int64_t value) { return value; }); };
  EXPECT_EQ(values.find("one"), nullptr);
  auto one = std::make_shared<const int64_t>(1);
  const auto two = std::make_shared<const int64_t>(2);
  values.keep("one", one);
  values.keep("two", two);
  EXPECT_EQ(values.find("one"), one);
  EXPECT_EQ(sum(), 3);
  one.reset();
  EXPECT_EQ(values.find("one"), nullptr);
  EXPECT_EQ(sum(), 2);
  const auto again = std::make_shared<const int64_t>(10);
  values.keep("one", again);
  EXPECT_EQ(values.find("one"), again);
  EXPECT_EQ(sum(), 12);
}

}  // namespace
}  // namespace troika
