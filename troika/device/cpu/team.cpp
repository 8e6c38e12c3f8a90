#include "troika/device/cpu/team.h"

#include <algorithm>
#include <system_error>

#include "troika/base/cores.h"
#include "troika/base/cpu_pause.h"
#include "troika/base/thread_time.h"

namespace troika::device::cpu {
namespace {

// Polls before sleeping: about 50 us, longer than the gap between two operators and the wake-up of
// a sleeping thread, shorter than anybody would notice in a core's load.
constexpr int kPolls = 2000;

// Returns once done(value of `counter`) holds; what is waited for must notify the counter.
template <class Done>
void wait_until(const std::atomic<uint32_t>& counter, const Done& done) {
  for (int i = 0; i < kPolls; ++i) {
    if (done(counter.load(std::memory_order_acquire))) return;
    cpu_pause();
  }
  for (uint32_t seen = counter.load(std::memory_order_acquire); !done(seen);
       seen = counter.load(std::memory_order_acquire)) {
    counter.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

Team::Team(int members, std::vector<int> cores)
    : members_(members),
      cores_(std::move(cores)),
      runs_(std::make_unique<std::array<Run, kRuns>>()) {
  try {
    for (int member = 1; member < members_; ++member) {
      threads_.emplace_back([this, member] { member_loop(member); });
    }
  } catch (const std::system_error&) {  // the system has no more threads
    stop();
    throw;
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  stopping_.store(true, std::memory_order_release);
  latest_.fetch_add(1, std::memory_order_release);
  latest_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run(std::span<const int64_t> chunks, const Call& call) {
  if (members_ == 1) {
    for (size_t step = 0; step < chunks.size(); ++step) {
      for (int64_t chunk = 0; chunk < chunks[step]; ++chunk) {
        call.body(call.context, 0, static_cast<int>(step), chunk);
      }
    }
    return;
  }
  for (size_t first = 0; first < chunks.size(); first += Run::kMaxSteps) {
    const size_t count = std::min(Run::kMaxSteps, chunks.size() - first);
    run_part(chunks.subspan(first, count), static_cast<int>(first), call);
  }
}

void Team::run_part(std::span<const int64_t> chunks, int first_step, const Call& call) {
  uint32_t serial = latest_.load(std::memory_order_relaxed) + 1;
  if (serial == 0) serial = kRuns;  // wrapped round: the same place, and not the mark of a free one
  Run& run = (*runs_)[serial % kRuns];
  // A member enters before it looks at the serial, and this looks at who is inside after taking the
  // serial away: one of the two sees the other.
  run.serial.store(0, std::memory_order_seq_cst);
  while (run.inside.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  run.n_steps = chunks.size();
  run.first_step = first_step;
  run.call = call;
  for (size_t i = 0; i < chunks.size(); ++i) {
    run.steps[i].next.store(0, std::memory_order_relaxed);
    run.steps[i].done.store(0, std::memory_order_relaxed);
    run.steps[i].chunks = chunks[i];
  }
  run.serial.store(serial, std::memory_order_seq_cst);
  latest_.store(serial, std::memory_order_release);
  latest_.notify_all();
  work(run, 0);
}

void Team::work(Run& run, int member) {
  for (size_t i = 0; i < run.n_steps; ++i) {
    Step& step = run.steps[i];
    const auto all = static_cast<uint32_t>(step.chunks);
    for (int64_t chunk = step.next.fetch_add(1, std::memory_order_relaxed); chunk < step.chunks;
         chunk = step.next.fetch_add(1, std::memory_order_relaxed)) {
      run.call.body(run.call.context, member, run.first_step + static_cast<int>(i), chunk);
      if (step.done.fetch_add(1, std::memory_order_acq_rel) + 1 == all) step.done.notify_all();
    }
    wait_until(step.done, [all](uint32_t done) { return done == all; });
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
    wait_until(latest_, [seen](uint32_t latest) { return latest != seen; });
    if (stopping_.load(std::memory_order_acquire)) return;
    seen = latest_.load(std::memory_order_acquire);
    Run& run = (*runs_)[seen % kRuns];
    run.inside.fetch_add(1, std::memory_order_seq_cst);
    if (run.serial.load(std::memory_order_seq_cst) == seen) work(run, member);
    run.inside.fetch_sub(1, std::memory_order_seq_cst);
  }
}

Duration Team::cpu_time() const {
  Duration sum{};
  for (std::thread& thread : threads_) sum += cpu_time_of(thread);
  return sum;
}

}  // namespace troika::device::cpu
