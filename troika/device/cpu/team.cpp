#include "troika/device/cpu/team.h"

#include "troika/base/cores.h"
#include "troika/base/cpu_pause.h"

namespace troika::device::cpu {
namespace {

// Polls before sleeping: about 50 us, longer than the gap between two operators and the wake-up of
// a sleeping thread, shorter than anybody would notice in a core's load.
constexpr int kPolls = 2000;

// Returns once `counter` differs from `seen`.
void wait_for_change(const std::atomic<uint32_t>& counter, uint32_t seen) {
  for (int i = 0; i < kPolls; ++i) {
    if (counter.load(std::memory_order_acquire) != seen) return;
    cpu_pause();
  }
  while (counter.load(std::memory_order_acquire) == seen) {
    counter.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

Team::Team(int members, std::vector<int> cores) : members_(members), cores_(std::move(cores)) {
  for (int member = 1; member < members_; ++member) {
    threads_.emplace_back([this, member] { member_loop(member); });
  }
}

Team::~Team() {
  if (threads_.empty()) return;
  stopping_ = true;
  start();
  for (std::thread& thread : threads_) thread.join();
}

void Team::start() {
  next_chunk_.store(0, std::memory_order_relaxed);
  starts_.fetch_add(1, std::memory_order_release);
  starts_.notify_all();
}

void Team::barrier() {
  if (members_ == 1) {
    next_chunk_.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t seen = barriers_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
    arrived_.store(0, std::memory_order_relaxed);
    next_chunk_.store(0, std::memory_order_relaxed);
    barriers_.fetch_add(1, std::memory_order_release);
    barriers_.notify_all();
  } else {
    wait_for_change(barriers_, seen);
  }
}

void Team::member_loop(int member) {
  if (!cores_.empty()) {
    // A core that cannot be had only costs speed.
    const int core = cores_[static_cast<size_t>(member) % cores_.size()];
    static_cast<void>(pin_this_thread({&core, 1}));
  }
  uint32_t seen = 0;
  while (true) {
    wait_for_change(starts_, seen);
    ++seen;
    if (stopping_) return;
    job_(context_, member);
    barrier();
  }
}

}  // namespace troika::device::cpu
