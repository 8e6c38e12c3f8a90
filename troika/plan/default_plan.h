// The plan that is used without a planner: each device gets a share in proportion to its rate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"

namespace troika::plan {

// Passes of more rows are prefill here: a cut along them leaves each device enough.
inline constexpr int64_t kManyRows = 64;

// How fast a device is in each phase, in any unit that the devices share.
struct DeviceRates {
  double prefill = 0;  // with many rows
  double decode = 0;   // with one row
  // The same for what devices share between two joins, since one that starts a task slowly gets
  // less of what is short; 0: as `decode`.
  double attention = 0;  // q, k, v, attention and its output projection
  double mlp = 0;        // gate, up and down
  double head = 0;

  bool operator==(const DeviceRates&) const = default;
};

// What a user may prescribe of it: `--split RULE`. RULE is one or two of [PHASE=]CUT[:SHARE/...],
// joined by commas. PHASE is prefill or decode (default: both); CUT is none, weight-centric,
// activation-centric, hybrid, k-cut or paired; the shares are those of the devices, in their order,
// in any unit. For example "paired", "prefill=activation-centric:60/40,decode=none".
struct SplitRule {
  struct Phase {
    Cut cut = Cut::kPaired;
    std::vector<double> shares;  // empty: by rates
  };
  std::optional<Phase> prefill;
  std::optional<Phase> decode;

  // True if no share of any phase depends on rates: none need be measured.
  bool gives_all_shares() const;
};
// kInvalidArgument naming the part that cannot be read.
Result<SplitRule> parse_split(std::string_view rule, size_t n_devices);

struct DefaultPlanOptions {
  int64_t max_rows = 0;
  std::string kv_type = "f32";
  SplitRule split;
  double least_share = 0;  // that each device gets of what is cut, as a part of 1
};

// Decode is cut in pairs, long prefill along the rows, what lies between in pairs. With one device,
// single_device_plan(). `infos` and `rates` in the same order, `rates` positive.
Plan default_plan(const graph::Graph& graph, std::span<const device::DeviceInfo> infos,
                  std::span<const DeviceRates> rates, const DefaultPlanOptions& options);

}  // namespace troika::plan
