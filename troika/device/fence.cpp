#include "troika/device/fence.h"

#include <thread>

#include "troika/base/cpu_pause.h"

namespace troika::device {

void Timeline::wake_waiters() {
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  // Taking the lock orders this after the waiter's last check, so that no wake-up is lost.
  const std::lock_guard lock(mutex_);
  condition_.notify_all();
}

void Timeline::signal(uint64_t value) {
  value_.store(value, std::memory_order_seq_cst);
  wake_waiters();
}

void Timeline::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    error_ = std::move(error);
    failed_.store(true, std::memory_order_seq_cst);
  }
  wake_waiters();
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

Status Timeline::wait(uint64_t value, const WaitPolicy& policy) const {
  if (finished(value)) return outcome(value);
  const TimePoint start = clock_.now();
  if (policy.predicted > Duration::zero()) {
    if (policy.predicted > policy.margin) {
      std::this_thread::sleep_for(policy.predicted - policy.margin);
    }
    if (poll(value, start + policy.predicted + policy.overrun)) return outcome(value);
  }
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool done = true;
  if (policy.timeout > Duration::zero()) {
    const Duration left = policy.timeout - (clock_.now() - start);
    done = condition_.wait_for(lock, left, [&] { return finished(value); });
  } else {
    condition_.wait(lock, [&] { return finished(value); });
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  lock.unlock();
  if (!done) {
    return make_error(ErrorCode::kTimeout, "a device did not finish within {:.0f} ms",
                      to_ms(policy.timeout));
  }
  return outcome(value);
}

}  // namespace troika::device
