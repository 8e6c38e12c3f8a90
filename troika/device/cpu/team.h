// Team: a fixed set of threads that run one function together, with a barrier in microseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace troika::device::cpu {

// The thread that calls run() is member 0; the others are the team's own and live as long as it
// does. Between runs they poll for some microseconds and then sleep, so that an idle team costs
// nothing and an oversubscribed one does not hang.
class Team {
 public:
  // `cores` has one entry per member to pin it to; empty: not pinned.
  Team(int members, std::vector<int> cores);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return members_; }

  // Calls function(member) on every member and returns when all are done.
  template <class Function>
  void run(Function&& function) {
    if (members_ == 1) {
      next_chunk_.store(0, std::memory_order_relaxed);
      function(0);
      return;
    }
    job_ = [](void* context, int member) { (*static_cast<Function*>(context))(member); };
    context_ = const_cast<void*>(static_cast<const void*>(&function));
    start();
    function(0);
    barrier();
  }

  // Inside run(): all members must call it the same number of times. Resets the chunk counter.
  void barrier();

  // Inside run(): the next unclaimed chunk number since the last barrier, from 0. Members share
  // work by claiming chunks until the number passes what there is.
  int64_t claim_chunk() { return next_chunk_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void start();
  void member_loop(int member);

  const int members_;
  const std::vector<int> cores_;
  void (*job_)(void*, int) = nullptr;
  void* context_ = nullptr;
  bool stopping_ = false;  // written before a start, read after it

  alignas(64) std::atomic<uint32_t> starts_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> barriers_{0};
  alignas(64) std::atomic<int64_t> next_chunk_{0};
  std::vector<std::thread> threads_;
};

}  // namespace troika::device::cpu
