// HangWatch: waits for what devices do in a pass, and finds out who hangs when nothing is finished
// any more.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/base/watched_time.h"
#include "troika/device/fence.h"
#include "troika/runtime/pass.h"
#include "troika/runtime/schedule.h"

namespace troika::runtime {

// Of one pass. Threads: the one that runs the pass.
class HangWatch {
 public:
  HangWatch(const Schedule& schedule, PassContext& context);

  // Waits until the fence is reached; the error of its device, which may be that it was found to
  // hang. All that hang are lost then, and the pass is spoiled. `predicted`: the time that the wait
  // should take; zero: not known.
  Status wait(const device::Fence& fence, Duration predicted = {});

  // Whether the pass turned out not to be wanted any more. It is spoiled then, so that what is
  // queued is skipped; what runs is waited for, for its device is sound.
  bool cancelled() const { return cancelled_; }

 private:
  void look();
  size_t count_finished() const;
  std::vector<size_t> find_running() const;
  std::optional<Duration> expected(size_t task) const;
  Duration patience_by_work(size_t task) const;
  Duration patience(size_t task) const;
  Duration patience_if_cancelled(size_t task) const;
  void abandon(const std::vector<size_t>& hanging, Duration after);

  const Schedule& schedule_;
  PassContext& context_;
  size_t finished_ = 0;  // tasks, when last counted
  WatchedTime quiet_;    // since a task was finished
  bool cancelled_ = false;
};

}  // namespace troika::runtime
