// The quick check of a device before it is first used: the most telling cases of the conformance
// catalogue, as many as a second allows.
#pragma once

#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/device/device.h"

namespace troika::device {

// The cases of one operator, or of "stage": several in one program.
struct CheckedGroup {
  std::string group;
  int cases = 0;
  // Of the case that came nearest to its bound: the squared error as a part of the squares.
  double nmse = 0;
  double bound = 0;
};

struct CheckReport {
  std::vector<CheckedGroup> groups;
  int cases = 0;   // that ran
  int untold = 0;  // for which there was no time
  Duration took{};
};

struct CheckOptions {
  Duration budget = std::chrono::seconds(1);         // no case begins after this
  Duration task_timeout = std::chrono::seconds(10);  // then the device hangs
};

// kDeviceFailed naming operator, case, error and bound if the device computes something wrong;
// else what run_case() gives (conformance/run_case.h: after kTimeout the device is abandoned).
Result<CheckReport> check(Device& device, const CheckOptions& options = {},
                          const Clock& clock = system_clock());

}  // namespace troika::device
