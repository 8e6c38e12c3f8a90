// What passes show of the devices' rates, and what shares by them would save.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troika/base/clock.h"
#include "troika/plan/default_plan.h"
#include "troika/runtime/executor.h"

namespace troika::engine {

// One device's work under the same shares.
struct SeenWork {
  std::array<runtime::PartWork, runtime::kWorkParts> decode{};
  runtime::PartWork prefill{};
  int64_t decode_passes = 0;

  void add(const runtime::DeviceWork& work, int64_t passes);
};

// `known`, with the rates of those phases of which enough was seen on every device: 32 passes of
// decode, a quarter of a second of prefill.
std::vector<plan::DeviceRates> learnt_rates(std::span<const SeenWork> seen,
                                            std::span<const plan::DeviceRates> known);

// Parts (0 to 1) of the devices' time that shares by the rates seen would save: between two joins
// the slowest device counts now, and then all end together. 0 for a phase of which too little was
// seen.
struct Saved {
  double decode = 0;
  double prefill = 0;
};
Saved saved_by_balance(std::span<const SeenWork> seen);

// By phase, what new shares were to save when they were last made for it.
struct Tried {
  std::optional<double> decode;
  std::optional<double> prefill;
};

// Whether new shares are worth compiling for: some phase saves more than a core's speed changes by
// itself, and less than half of what the last new shares for it were to save. Shares become whole
// heads, tiles and standard lengths, so that what is left may not be had; and each phase has no
// more than a few new shares. If so, `tried` gets what they are to save in those phases.
bool try_new_shares(const Saved& saved, Tried& tried);

// Whether threads wanted a core in vain for so much of a time (a tenth) that its measurements say
// little.
bool was_disturbed(Duration without_core, Duration time);

}  // namespace troika::engine
