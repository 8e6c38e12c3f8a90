// What passes show of the devices' rates, and what shares by them would save.
#pragma once

#include <array>
#include <cstdint>
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

// Part (0 to 1) of the devices' time that shares by the rates seen would save: between two joins the
// slowest device counts now, and then all end together. The greater of decode's and of prefill's;
// 0 for a phase of which too little was seen.
double saved_by_balance(std::span<const SeenWork> seen);

// Whether threads wanted a core in vain for so much of a time (a tenth) that its measurements say
// little.
bool was_disturbed(Duration without_core, Duration time);

}  // namespace troika::engine
