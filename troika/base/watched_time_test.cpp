#include "troika/base/watched_time.h"

#include <gtest/gtest.h>

namespace troika {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class HandClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{milliseconds(7)};
};

TEST(WatchedTime, AddsWhatLiesBetweenLooks) {
  HandClock clock;
  WatchedTime watched(milliseconds(500), clock);
  for (int i = 1; i <= 100; ++i) {
    clock.advance(milliseconds(50));
    EXPECT_EQ(watched.look(), i * milliseconds(50));
  }
  watched.restart();
  EXPECT_EQ(watched.look(), Duration::zero());
}

TEST(WatchedTime, AStopCountsAsOneGap) {
  HandClock clock;
  WatchedTime watched(milliseconds(500), clock);
  clock.advance(milliseconds(100));
  EXPECT_EQ(watched.look(), milliseconds(100));
  clock.advance(hours(3));
  EXPECT_EQ(watched.look(), milliseconds(600));
  clock.advance(milliseconds(100));
  EXPECT_EQ(watched.look(), milliseconds(700));
  clock.advance(hours(3));
  watched.restart();
  clock.advance(milliseconds(1));
  EXPECT_EQ(watched.look(), milliseconds(1));
}

}  // namespace
}  // namespace troika
