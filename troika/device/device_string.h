// Device strings as users write them: `name[:instance][@first[-last]]`, several joined by commas.
// A device that wraps another one is written before it: `name:instance:device`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::device {

struct DeviceSpec {
  std::string text;        // as written
  std::string name;        // "opencl"
  std::string instance;    // "pocl"; may be empty
  std::vector<int> cores;  // from @; empty: not given. A wrapper has those of what it wraps.
  std::vector<DeviceSpec> wrapped;  // none, or the one device that this one wraps
};

// At least one spec; kInvalidArgument naming the part that cannot be read or is named twice.
Result<std::vector<DeviceSpec>> parse_device_string(std::string_view text);

// Gives each spec its cores: those after @, which must be among `allowed`; the others share evenly
// what no spec names (all of `allowed` if nothing is left). `limit` caps the cores of all devices
// together (0: no limit): cores that were not asked for by number are given up first, from the
// last.
Result<std::vector<std::vector<int>>> assign_cores(const std::vector<DeviceSpec>& specs,
                                                   const std::vector<int>& allowed, int limit);

}  // namespace troika::device
