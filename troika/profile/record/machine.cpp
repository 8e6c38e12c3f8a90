#include "troika/profile/record/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace troika::profile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLine = 200;
constexpr size_t kMaxMeters = 100;

// The first line, printable; nothing if there is none.
std::optional<std::string> line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  char c = 0;
  while (line.size() < kMaxLine && file.get(c) && c != '\n') {
    line += c >= ' ' && c <= '~' ? c : '?';
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

std::optional<double> number_of(const fs::path& path) {
  const auto line = line_of(path);
  double value = 0;
  if (!line) return std::nullopt;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), value);
  const bool sound = error == std::errc() && std::isfinite(value) && value >= 0 && value < 1e18;
  return sound ? std::optional(value) : std::nullopt;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (paths.size() < kMaxMeters) paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string cpu_name(const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");
  std::string line;
  for (int i = 0; i < 100 && std::getline(file, line) && line.size() < 4096; ++i) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) break;
    std::string name = line.substr(colon + 2, kMaxLine);
    for (char& c : name) c = c >= ' ' && c <= '~' ? c : '?';
    return name;
  }
  return "unknown";
}

std::string power_source(const std::string& root) {
  bool battery = false;
  for (const fs::path& supply : entries(root + "/sys/class/power_supply")) {
    if (line_of(supply / "type") == "Mains" && line_of(supply / "online") == "1") return "ac";
    battery = battery || line_of(supply / "status") == "Discharging";
  }
  return battery ? "battery" : "unknown";
}

void read_powercap(const std::string& root, std::vector<MeterReading>& meters) {
  for (const fs::path& zone : entries(root + "/sys/class/powercap")) {
    const auto energy = number_of(zone / "energy_uj");
    if (!energy) continue;
    MeterReading meter;
    meter.name = line_of(zone / "name").value_or(zone.filename().string());
    meter.kind = "powercap";
    meter.energy_uj = energy;
    meter.wraps_uj = number_of(zone / "max_energy_range_uj").value_or(0);
    meters.push_back(std::move(meter));
  }
}

void read_sensors(const std::string& root, std::vector<MeterReading>& meters) {
  for (const fs::path& chip : entries(root + "/sys/class/hwmon")) {
    for (const char* const sensor : {"power1_average", "power1_input"}) {
      const auto uw = number_of(chip / sensor);
      if (!uw) continue;
      meters.push_back(
          {line_of(chip / "name").value_or(chip.filename().string()), "hwmon", {}, 0, *uw * 1e-6});
      break;
    }
  }
  for (const fs::path& supply : entries(root + "/sys/class/power_supply")) {
    if (line_of(supply / "status") != "Discharging") continue;
    const auto uw = number_of(supply / "power_now");
    if (uw) meters.push_back({supply.filename().string(), "battery", {}, 0, *uw * 1e-6});
  }
}

}  // namespace

Machine read_machine(const std::string& root) {
  Machine machine;
  machine.cpu = cpu_name(root);
  machine.cores = std::thread::hardware_concurrency();
  const std::string clocks = root + "/sys/devices/system/cpu/cpu0/cpufreq/";
  machine.governor = line_of(clocks + "scaling_governor").value_or("unknown");
  machine.power_profile = line_of(root + "/sys/firmware/acpi/platform_profile").value_or("unknown");
  machine.power_source = power_source(root);
  machine.clock_mhz = std::min(number_of(clocks + "scaling_cur_freq").value_or(0) * 1e-3, 1e6);
  return machine;
}

std::vector<MeterReading> read_meters(const std::string& root) {
  std::vector<MeterReading> meters;
  read_powercap(root, meters);
  read_sensors(root, meters);
  meters.resize(std::min(meters.size(), kMaxMeters));
  return meters;
}

std::vector<PowerMeter> mean_power(const std::vector<MeterReading>& before,
                                   const std::vector<MeterReading>& after, double seconds) {
  std::vector<PowerMeter> meters;
  for (const MeterReading& end : after) {
    const auto begin = std::find_if(before.begin(), before.end(), [&](const MeterReading& m) {
      return m.name == end.name && m.kind == end.kind;
    });
    if (begin == before.end() || seconds <= 0) continue;
    double watts = 0;
    if (end.energy_uj && begin->energy_uj) {
      double spent = *end.energy_uj - *begin->energy_uj;
      if (spent < 0) spent += end.wraps_uj;
      watts = spent * 1e-6 / seconds;
    } else if (end.power_w && begin->power_w) {
      watts = (*end.power_w + *begin->power_w) / 2;
    }
    if (watts >= 0 && watts < 1e5) meters.push_back({end.name, end.kind, watts});
  }
  return meters;
}

}  // namespace troika::profile
