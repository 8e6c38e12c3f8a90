#include "cli/numbers.h"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

TEST(Numbers, IntegersMustBeWholeAndInRange) {
  EXPECT_EQ(*parse_integer("-n", "-1", {-1, 10}), -1);
  EXPECT_EQ(*parse_integer("-n", "10", {-1, 10}), 10);
  for (const char* bad : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "ten", "-2", "11",
                          "9223372036854775808", "-9223372036854775809", "1\n", "nan"}) {
    const auto value = parse_integer("-n", bad, {-1, 10});
    ASSERT_FALSE(value.has_value()) << bad;
    EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Numbers, MessagesNameFlagValueAndRange) {
  EXPECT_EQ(parse_integer("--threads", "99999", {1, 8}).error().message,
            "--threads: '99999' is out of range; allowed: 1 to 8");
  EXPECT_EQ(parse_number("--top-p", "lots", {0, 1}).error().message,
            "--top-p: 'lots' is not a number; allowed: 0 to 1");
  EXPECT_EQ(parse_integer("--seed", "", {0, INT64_MAX}).error().message,
            "--seed: '' is not a whole number; allowed: 0 or more");
}

TEST(Numbers, NumbersAreFiniteAndInRange) {
  EXPECT_DOUBLE_EQ(*parse_number("--temp", "0.8", {0, 2}), 0.8);
  EXPECT_DOUBLE_EQ(*parse_number("--temp", "1e-3", {0, 2}), 1e-3);
  for (const char* bad :
       {"", "nan", "-nan", "inf", "-inf", "1e999", "-0.1", "2.1", "0.5x", "0,5"}) {
    EXPECT_FALSE(parse_number("--temp", bad, {0, 2}).has_value()) << bad;
  }
}

TEST(Numbers, Switches) {
  EXPECT_TRUE(*parse_boolean("X", "on"));
  EXPECT_TRUE(*parse_boolean("X", "1"));
  EXPECT_FALSE(*parse_boolean("X", "false"));
  EXPECT_FALSE(parse_boolean("X", "").has_value());
  EXPECT_FALSE(parse_boolean("X", "2").has_value());
}

TEST(Numbers, QuotedValuesStayOneShortLine) {
  EXPECT_EQ(in_quotes("a\nb\x1b"), "'a\\nb\\x1b'");
  EXPECT_LT(in_quotes(std::string(100000, 'x')).size(), 120u);
}

}  // namespace
}  // namespace troika::cli
