// What a benchmark must tell of the machine it ran on.
#pragma once

#include <string>

namespace troika::cli {

// The cpu's frequency governor and the platform's power profile, "unknown" where the system hides
// them (containers, virtual machines).
std::string clock_governor();
std::string power_profile();

// "2026-01-31T12:00:00Z"
std::string utc_time();

}  // namespace troika::cli
