// A chip's description from a profile: what was measured of a machine becomes facts, so that plans
// for it can be made and forecast elsewhere.
#pragma once

#include <string>

#include "troika/base/result.h"
#include "troika/profile/record/profile.h"
#include "troika/soc/soc.h"

namespace troika::cost {

// Units are the profile's devices. What a profile does not hold (idle power) is 0, of kind
// "fitted", and says so. docs/profiling.md tells which points become which figures. kInvalidData if
// the profile has a device of which no product was measured.
Result<soc::Soc> describe_profile(const profile::Profile& profile, const std::string& name);

}  // namespace troika::cost
