#include "troika/device/faulty/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troika::device::faulty {
namespace {

TEST(ParseFault, ReadsEveryFault) {
  const auto kind = [](std::string_view text) {
    const auto fault = parse_fault(text);
    EXPECT_TRUE(fault.has_value()) << text;
    EXPECT_EQ(fault->text, text);
    return fault->kind;
  };
  EXPECT_EQ(kind("open-fails"), FaultKind::kOpenFails);
  EXPECT_EQ(kind("open-hangs"), FaultKind::kOpenHangs);
  EXPECT_EQ(kind("crash-on-open"), FaultKind::kCrashOnOpen);
  EXPECT_EQ(kind("wrong-values"), FaultKind::kWrongValues);
  EXPECT_EQ(kind("oom"), FaultKind::kOutOfMemory);
  EXPECT_EQ(parse_fault("nan@7")->task, 7);
  EXPECT_EQ(parse_fault("inf@1")->kind, FaultKind::kInf);
  EXPECT_EQ(parse_fault("hang@9223372036854775807")->task, INT64_MAX);
  EXPECT_EQ(parse_fault("lost@3")->kind, FaultKind::kLost);
  EXPECT_EQ(parse_fault("oom@4096")->bytes, 4096);
  EXPECT_EQ(parse_fault("slow@2.5")->factor, 2.5);
  EXPECT_EQ(parse_fault("slow@2.5-70")->factor, 2.5);
  EXPECT_EQ(parse_fault("slow@2.5-70")->task, 70);
}

TEST(ParseFault, RefusesWhatIsNoneAndSaysWhatThereIs) {
  for (const char* text : {"",
                           "@",
                           "@1",
                           "nan",
                           "nan@",
                           "nan@0",
                           "nan@-1",
                           "nan@1.5",
                           "nan@x",
                           "nan@1@2",
                           "nan@ 1",
                           "nan@9223372036854775808",
                           "NaN@1",
                           "open-fails@1",
                           "wrong-values@",
                           "oom@",
                           "oom@0",
                           "oom@-5",
                           "slow",
                           "slow@",
                           "slow@0.5",
                           "slow@nan",
                           "slow@inf",
                           "slow@1001",
                           "slow@1e99",
                           "slow@2x",
                           "slow@2-",
                           "slow@2-0",
                           "slow@2-1-3",
                           "explode"}) {
    const auto fault = parse_fault(text);
    ASSERT_FALSE(fault.has_value()) << text;
    EXPECT_EQ(fault.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(fault.error().message, ::testing::HasSubstr(std::string("\"") + text + "\""));
    EXPECT_THAT(fault.error().message, ::testing::HasSubstr("use open-fails"));
  }
}

}  // namespace
}  // namespace troika::device::faulty
