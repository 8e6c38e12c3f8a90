// What the system tells of the machine's clocks and power, read below a given root.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "troika/profile/record/profile.h"

namespace troika::profile {

// Governor and clock of the first core, platform profile, power source. `root` is "" for this
// machine, or a folder that holds a recorded "sys" and "proc". What is not told is "unknown".
Machine read_machine(const std::string& root);

// A meter as it stands now. Energy counters only rise, until they wrap at `wraps_uj`.
struct MeterReading {
  std::string name;
  std::string kind;
  std::optional<double> energy_uj;  // powercap
  double wraps_uj = 0;
  std::optional<double> power_w;  // hwmon, battery
};

// powercap packages, hwmon power sensors and discharging batteries; empty if there are none.
std::vector<MeterReading> read_meters(const std::string& root);

// Mean power between two readings `seconds` apart; sensors count as the mean of both.
std::vector<PowerMeter> mean_power(const std::vector<MeterReading>& before,
                                   const std::vector<MeterReading>& after, double seconds);

}  // namespace troika::profile
