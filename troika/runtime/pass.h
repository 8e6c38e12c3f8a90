// One pass of a schedule: submission, waiting, and faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "troika/base/result.h"
#include "troika/base/trace.h"
#include "troika/device/device.h"
#include "troika/device/fence.h"
#include "troika/runtime/executor.h"
#include "troika/runtime/pass_views.h"
#include "troika/runtime/schedule.h"

namespace troika::runtime {

// What passes share. Not moved while a pass runs: devices see its views.
struct PassContext {
  PassContext(std::span<const std::unique_ptr<device::Device>> the_devices,
              const ExecutorOptions& the_options);

  std::span<const std::unique_ptr<device::Device>> devices;
  ExecutorOptions options;
  PassViews views;
  std::vector<device::Fence> fences;  // by task; no timeline: not queued
  std::unique_ptr<std::atomic<bool>> spoiled;
  std::vector<LostDevice> lost;
  std::vector<DeviceWork> work;  // by device
  ControlWork control;
  Trace trace;
  int64_t passes = 0;
  // What each device has shown of its speed, by device.
  struct Pace {
    double seconds = 0;
    double macs = 0;
  };
  std::vector<Pace> paces;

  // Puts a device aside; the first reason counts.
  void lose(size_t device, const Error& reason);

  // Of the running pass.
  bool is_queued(size_t task) const { return fences[task].timeline != nullptr; }
  int64_t rows_of(const plan::Task& task) const;
  int64_t macs_of(const plan::Task& task) const;
};

// Runs all tasks of a compiled schedule on context.views and waits for every one, so that nothing
// of the pass runs on when its arrays are reused. kDeviceFailed, with the devices in context.lost;
// kCancelled if options.cancelled said so while something ran: tasks that were queued are skipped.
Status run_pass(Schedule& schedule, PassContext& context);

}  // namespace troika::runtime
