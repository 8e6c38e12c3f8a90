// The catalogue: every case that a device has to get right, made to its constraints (tiles,
// standard lengths, block tables).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troika/device/conformance/problem.h"

namespace troika::device::conformance {

struct Case {
  std::string group;  // the operator's name, or "stage" for several in one program
  std::string name;   // "Q4_0 160x96, 31 rows"
  std::function<std::shared_ptr<Problem>()> build;
  // When a quick check runs it: 1 first, then 2 and 3, as long as there is time; 0: never.
  int round = 0;
};

// Groups in the order of the graph's operators, "stage" last.
std::vector<std::string> groups();

// All cases of a group for a device of these facts.
std::vector<Case> cases_of(const std::string& group, const DeviceInfo& info);

}  // namespace troika::device::conformance
