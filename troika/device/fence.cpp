#include "troika/device/fence.h"

#include <algorithm>
#include <thread>

#include "troika/base/cpu_pause.h"

namespace troika::device {

void Timeline::signal(uint64_t value) {
  value_.store(value, std::memory_order_seq_cst);
  if (value < lowest_wanted_.load(std::memory_order_seq_cst)) return;
  // Taking the lock orders this after the waiter's last check, so that no wake-up is lost.
  const std::lock_guard lock(mutex_);
  condition_.notify_all();
}

void Timeline::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_seq_cst);
  condition_.notify_all();
}

void Timeline::forget(uint64_t value) const {
  wanted_.erase(std::find(wanted_.begin(), wanted_.end(), value));
  const auto lowest = std::min_element(wanted_.begin(), wanted_.end());
  lowest_wanted_.store(lowest == wanted_.end() ? kNobodyWaits : *lowest, std::memory_order_seq_cst);
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
  std::unique_lock lock(mutex_);
  wanted_.push_back(value);
  if (value < lowest_wanted_.load(std::memory_order_relaxed)) {
    lowest_wanted_.store(value, std::memory_order_seq_cst);
  }
  bool done = true;
  if (most > Duration::zero()) {
    done = condition_.wait_for(lock, most, [&] { return finished(value); });
  } else {
    condition_.wait(lock, [&] { return finished(value); });
  }
  forget(value);
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
