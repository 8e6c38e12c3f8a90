#include "troika/device/device_string.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troika::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceString, ReadsNamesInstancesAndCores) {
  const auto specs =
      parse_device_string("cpu@0-1,opencl:pocl@2,openvino:CPU,systolic:snapdragon-8-gen-3");
  ASSERT_TRUE(specs.has_value());
  ASSERT_EQ(specs->size(), 4u);
  EXPECT_EQ((*specs)[0].name, "cpu");
  EXPECT_THAT((*specs)[0].cores, ElementsAre(0, 1));
  EXPECT_EQ((*specs)[1].instance, "pocl");
  EXPECT_THAT((*specs)[1].cores, ElementsAre(2));
  EXPECT_EQ((*specs)[2].instance, "CPU");
  EXPECT_EQ((*specs)[3].instance, "snapdragon-8-gen-3");
  EXPECT_TRUE((*specs)[3].cores.empty());
}

TEST(DeviceString, ReadsADeviceAroundAnother) {
  const auto specs =
      parse_device_string("faulty:nan@7:cpu@0-1,faulty:slow@2.5:faulty:hang@3:opencl:pocl@2,cpu");
  ASSERT_TRUE(specs.has_value()) << specs.error().message;
  ASSERT_EQ(specs->size(), 3u);
  const DeviceSpec& nan = specs->front();
  EXPECT_EQ(nan.text, "faulty:nan@7:cpu@0-1");
  EXPECT_EQ(nan.name, "faulty");
  EXPECT_EQ(nan.instance, "nan@7");
  EXPECT_THAT(nan.cores, ElementsAre(0, 1));
  ASSERT_EQ(nan.wrapped.size(), 1u);
  EXPECT_EQ(nan.wrapped[0].text, "cpu@0-1");
  EXPECT_EQ(nan.wrapped[0].name, "cpu");
  EXPECT_THAT(nan.wrapped[0].cores, ElementsAre(0, 1));
  EXPECT_TRUE(nan.wrapped[0].wrapped.empty());
  const DeviceSpec& slow = (*specs)[1];
  EXPECT_EQ(slow.instance, "slow@2.5");
  ASSERT_EQ(slow.wrapped.size(), 1u);
  EXPECT_EQ(slow.wrapped[0].instance, "hang@3");
  ASSERT_EQ(slow.wrapped[0].wrapped.size(), 1u);
  EXPECT_EQ(slow.wrapped[0].wrapped[0].name, "opencl");
  EXPECT_EQ(slow.wrapped[0].wrapped[0].instance, "pocl");
  EXPECT_THAT(slow.cores, ElementsAre(2));
}

class BadDeviceString : public ::testing::TestWithParam<const char*> {};

TEST_P(BadDeviceString, IsRefusedByName) {
  const auto specs = parse_device_string(GetParam());
  ASSERT_FALSE(specs.has_value());
  EXPECT_EQ(specs.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(specs.error().message, HasSubstr("device \""));
}

INSTANTIATE_TEST_SUITE_P(Kinds, BadDeviceString,
                         ::testing::Values("", ",", "cpu,", "cpu@", "cpu@x", "cpu@-1", "cpu@1-0",
                                           "cpu@0-", "cpu@0-99999999999", "cpu@5000", "cpu:",
                                           "cpu:@1", "@1", "c p u", "cpu,cpu", "cpu@1@2", "cpu:a/b",
                                           "a:b:", "a::b", ":a:b", "a:b:c@x", "a:@1:b", "a:b@:c",
                                           "a:b@1@2:c", "a@1:b:c", "a:a:a:a:a:a:a:a:a:a:b"));

std::vector<std::vector<int>> assign(const char* text, const std::vector<int>& allowed, int limit) {
  const auto specs = parse_device_string(text);
  EXPECT_TRUE(specs.has_value());
  const auto cores = assign_cores(*specs, allowed, limit);
  EXPECT_TRUE(cores.has_value()) << cores.error().message;
  return cores.value_or(std::vector<std::vector<int>>{});
}

TEST(AssignCores, SharesWhatNobodyNames) {
  EXPECT_THAT(assign("cpu", {0, 1}, 0), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(assign("cpu@1", {0, 1}, 0), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(assign("cpu@0,openvino", {0, 1, 2}, 0),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(assign("cpu,openvino", {0, 1, 4, 5}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5)));
}

TEST(AssignCores, SharesAllWhenNothingIsLeft) {
  EXPECT_THAT(assign("cpu@0-1,openvino", {0, 1}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
  EXPECT_THAT(assign("cpu,openvino", {3}, 0), ElementsAre(ElementsAre(3), ElementsAre(3)));
}

TEST(AssignCores, LimitTakesUnnamedCoresFirst) {
  EXPECT_THAT(assign("cpu", {0, 1, 2, 3}, 2), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(assign("cpu@0-1,openvino", {0, 1, 2, 3}, 3),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(assign("cpu", {0, 1}, 64), ElementsAre(ElementsAre(0, 1)));
}

TEST(DeviceString, RefusesAnAbsurdlyLongOneInAShortMessage) {
  const auto specs = parse_device_string(std::string(100'000, 'x'));
  ASSERT_FALSE(specs.has_value());
  EXPECT_THAT(specs.error().message, HasSubstr("100000 bytes"));
  EXPECT_LT(specs.error().message.size(), 200u);
}

TEST(AssignCores, RefusesCoresThatAreNotAllowed) {
  const auto specs = parse_device_string("cpu@7");
  const auto cores = assign_cores(*specs, {0, 1}, 0);
  ASSERT_FALSE(cores.has_value());
  EXPECT_THAT(cores.error().message, HasSubstr("core 7"));
}

}  // namespace
}  // namespace troika::device
