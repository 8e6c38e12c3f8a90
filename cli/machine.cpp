#include "cli/machine.h"

#include <ctime>
#include <fstream>

namespace troika::cli {
namespace {

std::string first_word(const char* path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? word : "unknown";
}

}  // namespace

std::string clock_governor() {
  return first_word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
}

std::string power_profile() { return first_word("/sys/firmware/acpi/platform_profile"); }

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace troika::cli
