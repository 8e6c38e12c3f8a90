// Team: a fixed set of threads that work through steps together, in microseconds from step to step.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "troika/base/clock.h"

namespace troika::device::cpu {

// The thread that calls run() is member 0; the others are the team's own and live as long as it
// does. Between runs they poll for some microseconds and then sleep, so that an idle team costs
// nothing.
//
// A step ends when its chunks are done, not when all members have arrived: a member that the system
// has put aside delays nobody unless it holds a chunk, and finds its place when it comes back. On a
// busy machine a team is therefore not slower than the members that run.
class Team {
 public:
  // `cores` has one entry per member to pin it to; empty: not pinned. std::system_error, of which
  // nothing stays behind, if the system refuses a thread.
  Team(int members, std::vector<int> cores);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return members_; }
  // That its own threads have spent on cores; member 0's is the caller's.
  Duration cpu_time() const;

  // For each step s in order calls body(member, s, chunk) once for every chunk in [0, chunks[s]),
  // on whichever member is free; no chunk of a step begins before the step before it is done.
  // Returns when all steps are done. One caller at a time.
  template <class Body>
  void run(std::span<const int64_t> chunks, Body&& body) {
    const Call call = {[](void* context, int member, int step, int64_t chunk) {
                         (*static_cast<std::remove_reference_t<Body>*>(context))(member, step,
                                                                                 chunk);
                       },
                       const_cast<void*>(static_cast<const void*>(&body))};
    run(chunks, call);
  }

 private:
  struct Call {
    void (*body)(void* context, int member, int step, int64_t chunk) = nullptr;
    void* context = nullptr;
  };
  struct alignas(64) Step {
    std::atomic<int64_t> next{0};  // first chunk that nobody has claimed
    std::atomic<uint32_t> done{0};
    int64_t chunks = 0;
  };
  // One call of run(). A member that comes late may still look at an old one, so there are several;
  // each is filled again only when nobody is inside.
  struct Run {
    static constexpr size_t kMaxSteps = 16;
    std::atomic<uint32_t> serial{0};  // 0: being filled
    std::atomic<int> inside{0};
    size_t n_steps = 0;
    int first_step = 0;
    Call call;
    std::array<Step, kMaxSteps> steps;
  };
  static constexpr uint32_t kRuns = 32;

  void run(std::span<const int64_t> chunks, const Call& call);
  void run_part(std::span<const int64_t> chunks, int first_step, const Call& call);
  static void work(Run& run, int member);
  void stop();
  void member_loop(int member);

  const int members_;
  const std::vector<int> cores_;
  const std::unique_ptr<std::array<Run, kRuns>> runs_;
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<uint32_t> latest_{0};  // serial of the latest run
  mutable std::vector<std::thread> threads_;     // mutable for their handles
};

}  // namespace troika::device::cpu
