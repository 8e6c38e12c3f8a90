// How the program tries its devices: `cpu` here, every other in a child process of its own kind,
// with what was learnt remembered in the user's cache.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/cache_folder.h"
#include "troika/device/probe/probe.h"
#include "troika/device/registry/registry.h"

namespace troika::cli {

struct ProberOptions {
  device::OpenOptions open;
  std::string cache_folder = cli::cache_folder();           // empty: nothing is remembered
  bool again = false;                                       // forget what earlier runs found out
  Duration time_limit = device::ProbeRequest().time_limit;  // of a child
  // Also check the values of `cpu`, which is what the others are checked against.
  bool check_reference = false;
};

// What came of one device of a device string.
struct TriedDevice {
  std::string name;  // as the user wrote it
  device::ProbeReport report;

  bool good() const { return report.end == device::ProbeEnd::kGood; }
  // Not there, or not as named; other devices that are not good are broken.
  bool missing() const;
};

// Tries the devices of a device string one after another, each with the cores that it would have
// among the others. An error is about the string itself, or about a child that cannot be started.
Result<std::vector<TriedDevice>> try_devices(std::string_view device_string,
                                             const ProberOptions& options);

// The error of one device, if it is not good: what EngineOptions::probe asks for.
Status probe_device(const std::string& device, const ProberOptions& options);

// What earlier runs of this build learnt, kept below a cache folder; empty: nothing is.
device::DeviceStore device_store(std::string folder);

}  // namespace troika::cli
