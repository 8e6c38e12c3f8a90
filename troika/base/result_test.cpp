#include "troika/base/result.h"

#include <gtest/gtest.h>

#include <set>

namespace troika {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return make_error(ErrorCode::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  ASSIGN_OR_RETURN(int first, half(value));
  ASSIGN_OR_RETURN(int second, half(first));
  return second;
}

Status check(int value) {
  RETURN_IF_ERROR(half(value));
  return {};
}

TEST(Result, PropagatesValuesAndErrors) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(check(2).has_value());
  EXPECT_EQ(check(3).error().code, ErrorCode::kInvalidArgument);
}

TEST(Result, ExitCodesAreDistinctAndInRange) {
  std::set<int> seen;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const int code = exit_code(static_cast<ErrorCode>(i));
    EXPECT_GE(code, 1);
    EXPECT_LE(code, 125);
    EXPECT_TRUE(seen.insert(code).second) << code;
  }
}

}  // namespace
}  // namespace troika
