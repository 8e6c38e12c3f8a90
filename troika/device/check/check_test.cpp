#include "troika/device/check/check.h"

#include <gtest/gtest.h>

#include <set>

#include "troika/device/conformance/catalogue.h"
#include "troika/device/conformance/testing/reference_device.h"

namespace troika::device {
namespace {

using conformance::testing::Fault;
using conformance::testing::Precision;
using conformance::testing::ReferenceDevice;

// Passes half a second whenever somebody looks.
class HastyClock final : public Clock {
 public:
  TimePoint now() const override {
    now_ += std::chrono::milliseconds(500);
    return now_;
  }

 private:
  mutable TimePoint now_{};
};

TEST(Check, ARightDevicePassesAndEveryOperatorIsTold) {
  ReferenceDevice exact(Fault::kNone, Precision::kDouble, {1, 32, 64, 128});
  ReferenceDevice half(Fault::kNone, Precision::kHalf);
  CheckOptions patient;
  patient.budget = std::chrono::minutes(5);  // under a sanitizer
  for (ReferenceDevice* device : {&exact, &half}) {
    const auto report = check(*device, patient);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    std::set<std::string> groups;
    for (const CheckedGroup& group : report->groups) {
      groups.insert(group.group);
      EXPECT_GT(group.cases, 0);
      EXPECT_GT(group.bound, 0);
      EXPECT_LE(group.nmse, group.bound);
    }
    const std::vector<std::string> all = conformance::groups();
    EXPECT_EQ(groups, std::set<std::string>(all.begin(), all.end()));
    EXPECT_GT(report->cases, 30);
    EXPECT_EQ(report->untold, 0);
    EXPECT_GT(report->took, Duration::zero());
  }
}

TEST(Check, EndsWithItsBudget) {
  ReferenceDevice device;
  const HastyClock clock;
  const auto report = check(device, {}, clock);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->cases, 3);  // at 0.5, 1 and 1.5 seconds by this clock
  EXPECT_GT(report->untold, 30);
}

// In the time that a device of a second's cases has: the first round is enough for these.
TEST(Check, WrongValuesAreNamedWithErrorAndBound) {
  struct Wrong {
    Fault fault;
    std::string_view parts[3];
  };
  for (const Wrong& wrong :
       {Wrong{Fault::kGivesTheSameForAnyInput, {"wrong values: mat_mul (", "squared error", ""}},
        Wrong{Fault::kEightBitActivations, {"wrong values: mat_mul (Q4_0", "1e-11 is allowed", ""}},
        Wrong{Fault::kIgnoresHeadGroups, {"wrong values: attention (heads ", "", ""}},
        Wrong{Fault::kIgnoresOutputSlice, {"wrong values: mat_mul (Q4_0 outputs ", "", ""}},
        Wrong{Fault::kIgnoresInputSlice, {"wrong values: mat_mul (Q4_0 inputs ", "", ""}},
        Wrong{Fault::kGivesNan,
              {"NaN or infinite values", "mat_mul", "leave it out of --device"}}}) {
    ReferenceDevice device(wrong.fault);
    CheckOptions patient;
    patient.budget = std::chrono::minutes(5);
    const auto report = check(device, patient);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kDeviceFailed);
    for (const std::string_view part : wrong.parts) {
      EXPECT_NE(report.error().message.find(part), std::string::npos)
          << report.error().message << " lacks " << part;
    }
  }
}

TEST(Check, AHangingDeviceGivesATimeout) {
  ReferenceDevice device(Fault::kHangs);
  CheckOptions options;
  options.task_timeout = std::chrono::milliseconds(20);
  const auto report = check(device, options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace troika::device
