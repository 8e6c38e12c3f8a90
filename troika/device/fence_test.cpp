#include "troika/device/fence.h"

#include <gtest/gtest.h>
#if defined(__linux__)
#include <sys/resource.h>
#endif

#include <thread>
#include <vector>

namespace troika::device {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Fence, NothingToWaitForIsReached) {
  const Fence none;
  EXPECT_TRUE(none.reached());
  EXPECT_TRUE(none.wait().has_value());
}

TEST(Fence, LowerValuesAreReachedWithAHigherOne) {
  Timeline timeline;
  timeline.signal(5);
  EXPECT_TRUE(timeline.reached(3));
  EXPECT_TRUE(timeline.wait(5).has_value());
  EXPECT_FALSE(timeline.reached(6));
}

TEST(Fence, WaitTimesOut) {
  Timeline timeline;
  WaitPolicy policy;
  policy.timeout = milliseconds(5);
  const Status status = timeline.wait(1, policy);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kTimeout);
}

TEST(Fence, FailureEndsWaitsForWhatIsNotReached) {
  Timeline timeline;
  timeline.signal(1);
  std::thread breaker([&] {
    std::this_thread::sleep_for(milliseconds(2));
    timeline.fail({ErrorCode::kDeviceFailed, "gone"});
  });
  const Status status = timeline.wait(2);
  breaker.join();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "gone");
  EXPECT_TRUE(timeline.wait(1).has_value());
}

// Every way of waiting, against a signal that comes earlier or later than predicted: what was
// written before the signal is seen after the wait.
class FencePolicies : public ::testing::TestWithParam<microseconds> {};

TEST_P(FencePolicies, WritesBeforeTheSignalAreVisible) {
  Timeline timeline;
  WaitPolicy policy;
  policy.predicted = GetParam();
  constexpr int kRounds = 200;
  std::vector<int> data(kRounds + 1, 0);
  std::thread device([&] {
    for (int i = 1; i <= kRounds; ++i) {
      data[static_cast<size_t>(i)] = i;
      timeline.signal(static_cast<uint64_t>(i));
      if (i % 50 == 0) std::this_thread::sleep_for(microseconds(300));
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    ASSERT_TRUE(timeline.wait(static_cast<uint64_t>(i), policy).has_value());
    EXPECT_EQ(data[static_cast<size_t>(i)], i);
  }
  device.join();
}

INSTANTIATE_TEST_SUITE_P(Predictions, FencePolicies,
                         ::testing::Values(microseconds(0), microseconds(20), microseconds(200),
                                           microseconds(1000)));

#if defined(__linux__)
TEST(Fence, WhoWaitsForALaterValueSleepsOn) {
  Timeline timeline;
  constexpr uint64_t kLast = 200;
  int64_t switches = 0;
  std::thread later([&] {
    EXPECT_TRUE(timeline.wait(kLast).has_value());
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    switches = usage.ru_nvcsw;
  });
  std::thread each([&] {
    for (uint64_t value = 1; value <= kLast; ++value) {
      EXPECT_TRUE(timeline.wait(value).has_value());
    }
  });
  for (uint64_t value = 1; value <= kLast; ++value) {
    std::this_thread::sleep_for(microseconds(200));
    timeline.signal(value);
  }
  later.join();
  each.join();
  EXPECT_LT(switches, 20);
}
#endif

TEST(Fence, ManyWaitersWakeUp) {
  Timeline timeline;
  std::vector<std::thread> waiters;
  std::atomic<int> woken{0};
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] {
      if (timeline.wait(1)) ++woken;
    });
  }
  std::this_thread::sleep_for(milliseconds(2));
  timeline.signal(1);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 8);
}

}  // namespace
}  // namespace troika::device
