#include "troika/device/fence.h"

#include <algorithm>
#include <thread>

#include "troika/base/cpu_pause.h"

namespace troika::device {

void Timeline::signal(uint64_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (value < lowest_wanted_.load(std::memory_order_seq_cst)) return;
  // Taking the lock orders this after the sleeper's last check, so that no wake-up is lost.
  const std::lock_guard lock(mutex_);
  for (Sleeper* const sleeper : sleepers_) {
    if (sleeper->value <= value) sleeper->awake.notify_one();
  }
}

void Timeline::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_seq_cst);
  for (Sleeper* const sleeper : sleepers_) sleeper->awake.notify_one();
}

// With the lock held, as forget().
void Timeline::enter(Sleeper& sleeper) const {
  sleepers_.push_back(&sleeper);
  if (sleeper.value < lowest_wanted_.load(std::memory_order_relaxed)) {
    lowest_wanted_.store(sleeper.value, std::memory_order_seq_cst);
  }
}

void Timeline::forget(const Sleeper& sleeper) const {
  sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), &sleeper));
  uint64_t lowest = kNobodyWaits;
  for (const Sleeper* const other : sleepers_) lowest = std::min(lowest, other->value);
  lowest_wanted_.store(lowest, std::memory_order_seq_cst);
}

bool Timeline::finished(uint64_t value) const {
  return value_.load(std::memory_order_seq_cst) >= value || failed_.load(std::memory_order_seq_cst);
}

Status Timeline::outcome(uint64_t value) const {
  if (reached(value)) return {};
  const std::lock_guard lock(mutex_);
  return tl::unexpected<Error>(error_);
}

bool Timeline::poll(uint64_t value, TimePoint until) const {
  // The clock is read seldom: a poll is a load of a shared line, the clock costs ten times that.
  constexpr int kPollsPerClockRead = 32;
  do {
    for (int i = 0; i < kPollsPerClockRead; ++i) {
      if (finished(value)) return true;
      cpu_pause();
    }
  } while (clock_.now() < until);
  return finished(value);
}

bool Timeline::block(uint64_t value, Duration most) const {
  // A condition of its own: who waits for the last task of a pass is not woken at every join.
  Sleeper sleeper;
  sleeper.value = value;
  std::unique_lock lock(mutex_);
  enter(sleeper);
  bool done = true;
  if (most > Duration::zero()) {
    done = sleeper.awake.wait_for(lock, most, [&] { return finished(value); });
  } else {
    sleeper.awake.wait(lock, [&] { return finished(value); });
  }
  forget(sleeper);
  return done;
}

Status Timeline::wait(uint64_t value, const WaitPolicy& policy) const {
  if (finished(value)) return outcome(value);
  const TimePoint start = clock_.now();
  if (policy.predicted > Duration::zero()) {
    // Not a plain sleep: a wait that turns out short must end early, or it would be taken for long
    // the next time, too.
    const Duration asleep = policy.predicted - policy.margin;
    if (asleep > Duration::zero() && block(value, asleep)) return outcome(value);
    if (poll(value, start + policy.predicted + policy.overrun)) return outcome(value);
  }
  Duration left{};
  if (policy.timeout > Duration::zero()) {
    left = std::max(policy.timeout - (clock_.now() - start), Duration(1));
  }
  if (!block(value, left)) {
    return make_error(ErrorCode::kTimeout, "a device did not finish within {:.0f} ms",
                      to_ms(policy.timeout));
  }
  return outcome(value);
}

}  // namespace troika::device
