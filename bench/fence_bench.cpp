// Compares the ways in which one device's task comes to wait for another's, taking turns in one
// process (`troika run --sync` names them):
//   fence_bench [TURNS [FIRST_CORE SECOND_CORE]]
// For tasks of several lengths: from the end of what was waited for to the start of the waiter, and
// the time on a core that the wait itself took. Run it on an idle machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/need.h"
#include "troika/base/thread_time.h"
#include "troika/device/work_queue.h"

namespace {

using namespace troika;
using bench::fail;
using bench::need;
using device::Fence;

// Works for as long as it says.
struct Spin final : device::Kernel {
  Duration length{};
};

Status spin(const device::Kernel& kernel, const device::Bindings&) {
  const Clock& clock = system_clock();
  const TimePoint until = clock.now() + static_cast<const Spin&>(kernel).length;
  while (clock.now() < until) {
  }
  return {};
}

struct Way {
  const char* name = "";
  bool ahead = false;  // both are queued at once; else the caller waits in between
  bool polls = false;
};
constexpr Way kWays[] = {
    {"blocking", false, false}, {"predict", false, true}, {"queue", true, true}};
constexpr size_t kWayCount = std::size(kWays);

struct Samples {
  std::vector<double> wake_up_us;
  Duration waited{};
  Duration cpu{};  // of whoever waited
};

class Bench {
 public:
  Bench(int first_core, int second_core)
      : first_("first", {first_core}, system_clock(), spin),
        second_("second", {second_core}, system_clock(), spin) {}

  // One task of `length`, and one behind it on the other core.
  void turn(const Way& way, Duration length, Samples& samples) {
    work_.length = length;
    device::SubmitOptions options;
    options.may_poll = way.polls;
    const Duration queue_cpu = second_.stats().cpu;
    const ThreadTime caller;
    const Fence done = need(first_.submit(work_, {}, {}, options));
    if (!way.ahead) {
      device::WaitPolicy policy;
      if (way.polls) policy.predicted = length;
      if (const Status waited = done.wait(policy); !waited) fail(waited.error().message);
    }
    const Duration caller_cpu = caller.passed();
    const Fence after = need(second_.submit(behind_, {}, {&done, 1}, options));
    if (const Status waited = after.wait(); !waited) fail(waited.error().message);
    const device::TaskTimes before = first_.times(done);
    const device::TaskTimes times = second_.times(after);
    samples.wake_up_us.push_back(to_us(times.start - before.end));
    samples.waited += before.end - before.start;
    samples.cpu +=
        way.ahead ? second_.stats().cpu - queue_cpu - (times.end - times.start) : caller_cpu;
  }

 private:
  Spin work_;
  Spin behind_;  // takes no time
  device::WorkQueue first_;
  device::WorkQueue second_;
};

double at(std::vector<double> samples, double part) {
  std::sort(samples.begin(), samples.end());
  const auto last = static_cast<double>(samples.size() - 1);
  return samples[static_cast<size_t>(part * last)];
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 200;
  const int first = argc > 3 ? std::atoi(argv[2]) : 0;
  const int second = argc > 3 ? std::atoi(argv[3]) : 1;
  if (turns < 1 || first < 0 || second < 0) fail("give TURNS and cores, e.g. 200 0 1");
  Bench bench(first, second);
  fmt::print(
      "| task, us | sync | wake-up median, us | 95 %, us | time on a core, of the wait |\n"
      "|---|---|---|---|---|\n");
  for (const int length_us : {100, 300, 1500, 5000}) {
    const Duration length = std::chrono::microseconds(length_us);
    Samples samples[kWayCount];
    Samples warm_up;
    for (const Way& way : kWays) bench.turn(way, length, warm_up);
    for (int turn = 0; turn < turns; ++turn) {
      for (size_t i = 0; i < kWayCount; ++i) bench.turn(kWays[i], length, samples[i]);
    }
    for (size_t i = 0; i < kWayCount; ++i) {
      fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} % |\n", length_us, kWays[i].name,
                 at(samples[i].wake_up_us, 0.5), at(samples[i].wake_up_us, 0.95),
                 100 * to_seconds(samples[i].cpu) / to_seconds(samples[i].waited));
    }
  }
}
