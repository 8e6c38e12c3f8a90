// CostModel: what work costs on each device of a chip, alone and together with others. The planner
// and the simulator know chips only through it; it may speak from a description or a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/soc/execution.h"

namespace troika::cost {

using Product = soc::Product;
using Estimate = soc::Work;

struct DeviceFacts {
  std::string name;
  std::string_view kind;  // "cpu", "gpu", "npu": for display
  // Rows, outputs and inputs that are computed are multiples of these.
  int64_t row_tile = 1;
  int64_t n_tile = 1;
  int64_t k_tile = 1;
  std::vector<int64_t> standard_lengths;  // rows for which graphs exist; empty: any
  bool static_graphs = false;             // a graph for other rows must be built
  bool only_products = false;             // results cross to another device
  double bandwidth_gbps = 0;              // alone
};

// How a device behaves in a run, beyond what each piece of work takes.
struct RunFacts {
  // The part of its speed in arithmetic that it keeps while another device works, too.
  double speed_among_others = 1;
  double turbo_speed = 1;  // times the sustained speed in arithmetic, while the chip's turbo lasts
  double turbo_power = 1;  // times the active power, meanwhile
  double drained_stall = 0;  // of a task that had to wait for another device: so much of its work
  int64_t queue_depth = 0;   // tasks that are submitted ahead; 0: all
  double datapath_switch_us = 0;  // between products on different paths
  double weights_switch_us = 0;   // between products of different weights on one path
  double compute_w = 0;           // above idle while it is bound by arithmetic
  double memory_w = 0;            // and by memory
  double waiting_w = 0;           // while its work waits or is being launched

  double active_w(bool memory_bound) const { return memory_bound ? memory_w : compute_w; }
};

struct ChipFacts {
  double idle_w = 0;
  double turbo_mj = 0;          // that the chip draws until its turbo ends
  double pass_overhead_us = 0;  // before and after the work of a pass
};

class CostModel {
 public:
  virtual ~CostModel() = default;

  virtual std::span<const DeviceFacts> devices() const = 0;

  // nullopt if the device cannot have it. Rows, outputs and inputs are padded here. Never less for
  // more outputs or inputs.
  virtual std::optional<Estimate> product(size_t device, const Product& product) const = 0;
  virtual std::optional<Estimate> attention(size_t device, double macs, double bytes) const = 0;
  // Work that only moves bytes: norms, sums, copies.
  virtual Estimate elementwise(size_t device, double bytes) const = 0;

  // What a set of devices (bit i for device i) reaches of the memory together, GB/s.
  virtual double shared_gbps(uint32_t devices) const = 0;
  // The part of its speed that each of a set keeps when together they would draw `demand_gbps`.
  double speed_together(uint32_t devices, double demand_gbps) const {
    const double most = shared_gbps(devices);
    return demand_gbps > most ? most / demand_gbps : 1;
  }

  // One join of the work of several devices.
  virtual double join_us() const = 0;
  virtual double blocking_join_us() const = 0;
  // To hand a task to a device whose queue is empty, or not.
  virtual double launch_us(size_t device, bool drained) const = 0;
  // To build a graph for so many rows; 0 where none is needed.
  virtual double build_us(size_t device, int64_t rows) const = 0;

  virtual RunFacts run_facts(size_t /*device*/) const { return {}; }
  virtual ChipFacts chip_facts() const { return {}; }
};

}  // namespace troika::cost
