// A profile for people: the characterization of devices as tables.
#pragma once

#include <string>

#include "troika/profile/record/profile.h"

namespace troika::cli {

// Machine, then of each device its rules, costs, speed against size, order and shape, then pairs.
std::string profile_text(const profile::Profile& profile);

// The same as charts, in one HTML page that needs nothing else.
std::string profile_page(const profile::Profile& profile);

}  // namespace troika::cli
