// How fast each device is on a model's layers: a short measurement, for shares.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/default_plan.h"

namespace troika::runtime {

struct RatesOptions {
  Duration budget = std::chrono::milliseconds(1500);  // for all devices together
  int64_t rows = 128;                                 // of a prefill pass
  std::function<bool()> cancelled;                    // asked now and then; true: kCancelled
};

// Runs the first layer alone on each device, with many rows and with one; then all devices together
// on the shares that follow, as many layers as do not stay in a cache with one row, and takes their
// rates again from that. A device that cannot compute all of a layer is measured together with the
// others only; kUnsupported where no device can compute an operator. Takes longer than the budget
// only where a pass does. Compiling is not counted. An error of the device
// itself names it.
Result<std::vector<plan::DeviceRates>> measure_rates(
    const graph::Graph& graph, std::span<const std::unique_ptr<device::Device>> devices,
    const RatesOptions& options, const Clock& clock = system_clock());

}  // namespace troika::runtime
