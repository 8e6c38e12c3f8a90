// Rates of devices that earlier runs measured, kept in a folder of the user's cache: a file for
// each set of devices that works on a model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/default_plan.h"

namespace troika::engine {

// All that rates depend on: the model, this program, and of each device its name, cores, version
// and facts (kernels, activations).
std::string rates_identity(const graph::Graph& graph,
                           std::span<const std::unique_ptr<device::Device>> devices,
                           std::string_view build);

struct KnownRates {
  std::vector<plan::DeviceRates> rates;  // in the order of the devices
  int64_t time = 0;                      // when they were measured, in seconds since 1970
};

// Any number of programs at once. What is missing, damaged, somebody else's or old only means that
// nothing is known.
class RatesStore {
 public:
  // `folder` is made when something is saved; empty: nothing is remembered.
  explicit RatesStore(std::string folder);

  // Of `n_devices` devices; not older than a week, for a machine changes.
  std::optional<KnownRates> find(const std::string& identity, size_t n_devices) const;
  // `disturbed`: measured while others wanted the cores; believed for ten minutes only. kIo if it
  // cannot be written.
  Status save(const std::string& identity, std::span<const plan::DeviceRates> rates,
              bool disturbed = false) const;

 private:
  const std::string folder_;  // of the rates alone
};

}  // namespace troika::engine
