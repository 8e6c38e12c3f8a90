// Stopwatch: runs workloads on a device again and again until their time is known.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/profile/measure/workload.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {

// When a time counts as known.
struct Repeats {
  int least = 3;
  int most = 40;
  Duration budget = std::chrono::milliseconds(40);  // no more repeats beyond `least` after this
  double noise = 0.01;  // of the median by its own spread, as a part of it: low enough to stop
  Duration task_timeout = std::chrono::seconds(60);
};

// Of values in us; at least one.
Sample summarize(std::vector<double> values);

// A workload that is compiled, with what must outlive its tasks.
struct Prepared {
  std::shared_ptr<Workload> workload;
  std::unique_ptr<device::Kernel> kernel;
  Duration compile_time{};
  int64_t kept_bytes = 0;  // that the device holds for it
};

class Stopwatch {
 public:
  // `host` is the clock of the calling thread; `cancelled` is asked before each task.
  Stopwatch(device::Device& device, const Clock& host, Repeats repeats,
            std::function<bool()> cancelled)
      : device_(device), host_(host), repeats_(repeats), cancelled_(std::move(cancelled)) {}

  Result<std::shared_ptr<Prepared>> prepare(std::shared_ptr<Workload> workload) const;
  // Times of tasks on the device's own clock, one after the other, from the second on; where
  // several are given each repeat runs all of them, and counts their mean. What `before` holds is
  // run ahead of each repeat and not counted.
  Result<Sample> time(std::span<const std::shared_ptr<Prepared>> prepared,
                      std::span<const std::shared_ptr<Prepared>> before = {}) const;
  // Submits and waits.
  Result<device::TaskTimes> run(const std::shared_ptr<Prepared>& prepared) const;
  Status wait(const device::Fence& fence, const std::shared_ptr<void>& kept) const;

  device::Device& device() const { return device_; }
  const Clock& host() const { return host_; }
  const Repeats& repeats() const { return repeats_; }

 private:
  Status check_cancelled() const;

  device::Device& device_;
  const Clock& host_;
  Repeats repeats_;
  std::function<bool()> cancelled_;
};

}  // namespace troika::profile
