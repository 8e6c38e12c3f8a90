#include "troika/base/critical_path.h"

#include <gtest/gtest.h>

namespace troika {
namespace {

using std::chrono::microseconds;

TraceEvent task(const std::string& device, int start, int end, int wait = 0, int64_t pass = 0) {
  TraceEvent event;
  event.device = device;
  event.start = microseconds(start);
  event.end = microseconds(end);
  event.wait = microseconds(wait);
  event.pass = pass;
  return event;
}

std::vector<size_t> path_of(std::vector<TraceEvent> events) {
  Trace trace;
  trace.events = std::move(events);
  return critical_path(trace);
}

using Path = std::vector<size_t>;

TEST(CriticalPath, FollowsWaitsFromDeviceToDevice) {
  EXPECT_EQ(path_of({task("cpu", 0, 10), task("npu", 0, 25), task("cpu", 26, 30, 16),
                     task("npu", 25, 28), task("npu", 31, 40, 3)}),
            (Path{1, 2, 4}));
  // Without waits a device's own queue is the chain.
  EXPECT_EQ(path_of({task("cpu", 0, 10), task("npu", 0, 9), task("cpu", 10, 30)}), (Path{0, 2}));
}

TEST(CriticalPath, WhatHadEndedBeforeTheWaitBeganWasNotWaitedFor) {
  EXPECT_EQ(path_of({task("cpu", 0, 10), task("npu", 0, 5), task("cpu", 14, 20, 3)}), (Path{0, 2}));
}

TEST(CriticalPath, EachPassHasItsOwn) {
  EXPECT_EQ(path_of({task("cpu", 50, 60, 0, 1), task("npu", 50, 55, 0, 1), task("npu", 0, 9, 0, 0),
                     task("cpu", 0, 8, 0, 0)}),
            (Path{2, 0}));
  EXPECT_TRUE(path_of({}).empty());
}

// Tasks without length, equal times and waits that point nowhere must not go round.
TEST(CriticalPath, EndsWhateverTheTimesAre) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < 1000; ++i) {
    events.push_back(task(i % 3 == 0 ? "cpu" : "npu", 7, i % 5 == 0 ? 3 : 7, 100));
  }
  const Path path = path_of(events);
  EXPECT_GE(path.size(), 1u);
  EXPECT_LE(path.size(), events.size());
}

}  // namespace
}  // namespace troika
