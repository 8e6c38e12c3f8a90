// Fence: a point in a device's work that others can wait for.
//
// Each device queue has one Timeline, a counter that only grows: the device signals value v when
// everything up to v is done. A Fence is a timeline and a value; it is two words, copied freely.
//
// Threads: any thread may call reached() and wait(); only the device signals and fails. After
// wait() or a true reached(), everything that the device wrote before signal() is visible.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"

namespace troika::device {

// How wait() passes the time until a value is reached.
struct WaitPolicy {
  // Expected time from now; zero: not known, block at once.
  Duration predicted{0};
  // Sleep until this long before the predicted end, or until the end if that comes first; then
  // poll. Covers a timer's slack (50-100 us).
  Duration margin = std::chrono::microseconds(80);
  // Poll at most this long past the predicted end, then block.
  Duration overrun = std::chrono::microseconds(50);
  // Give up after this long in all; zero: never.
  Duration timeout{0};
};

class Timeline {
 public:
  explicit Timeline(const Clock& clock = system_clock()) : clock_(clock) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Done up to `value`. Called in ascending order by the device.
  void signal(uint64_t value);
  // The device is broken: every wait, present or future, for a value not yet reached gives `error`.
  void fail(Error error);

  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  bool reached(uint64_t value) const { return this->value() >= value; }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The device's error; kTimeout after policy.timeout.
  Status wait(uint64_t value, const WaitPolicy& policy = {}) const;

 private:
  static constexpr uint64_t kNobodyWaits = UINT64_MAX;

  // Somebody who sleeps until `value`.
  struct Sleeper {
    uint64_t value = 0;
    std::condition_variable awake;
  };

  bool finished(uint64_t value) const;
  bool poll(uint64_t value, TimePoint until) const;
  // Sleeps until the value is reached, for `most` at most (zero: for ever); false: it is not.
  bool block(uint64_t value, Duration most) const;
  Status outcome(uint64_t value) const;
  void enter(Sleeper& sleeper) const;
  void forget(const Sleeper& sleeper) const;

  const Clock& clock_;
  std::atomic<uint64_t> value_{0};
  std::atomic<bool> failed_{false};
  // Who sleeps, and the lowest value that they wait for: signal() takes the lock only when that one
  // is reached, and wakes only those whose value is. A sleeper enters before it checks a last time.
  mutable std::vector<Sleeper*> sleepers_;
  mutable std::atomic<uint64_t> lowest_wanted_{kNobodyWaits};
  mutable std::mutex mutex_;
  Error error_;
};

struct Fence {
  const Timeline* timeline = nullptr;  // null: nothing to wait for
  uint64_t value = 0;

  bool reached() const { return timeline == nullptr || timeline->reached(value); }
  Status wait(const WaitPolicy& policy = {}) const {
    return timeline == nullptr ? Status{} : timeline->wait(value, policy);
  }
};

}  // namespace troika::device
