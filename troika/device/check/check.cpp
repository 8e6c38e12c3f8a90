#include "troika/device/check/check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "troika/device/conformance/run_case.h"

namespace troika::device {
namespace {

using conformance::Case;
using conformance::Outcome;

// Those of the first round come first, an operator each, and of these the products, which are most
// of what a device is given.
std::vector<Case> telling_cases(const DeviceInfo& info) {
  std::vector<Case> cases;
  for (const std::string& group : conformance::groups()) {
    for (Case& c : conformance::cases_of(group, info)) {
      if (c.round > 0) cases.push_back(std::move(c));
    }
  }
  const auto rank = [](const Case& c) {
    return std::pair(c.round, c.group != to_string(graph::OpKind::kMatMul));
  };
  std::stable_sort(cases.begin(), cases.end(),
                   [&](const Case& a, const Case& b) { return rank(a) < rank(b); });
  return cases;
}

tl::unexpected<Error> wrong_values(const std::string& device, const Case& c,
                                   const Outcome& outcome) {
  const std::string error =
      std::isfinite(outcome.nmse)
          ? fmt::format("a squared error of {:.2g} of the squares", outcome.nmse)
          : "NaN or infinite values";
  return make_error(ErrorCode::kDeviceFailed,
                    "device {} computes wrong values: {} ({}) gives {} at {}, {:.2g} is allowed; "
                    "update its driver, or leave it out of --device",
                    device, c.group, c.name, error, outcome.place, outcome.bound);
}

void add(CheckReport& report, const std::string& group, const Outcome& outcome) {
  auto found = std::find_if(report.groups.begin(), report.groups.end(),
                            [&](const CheckedGroup& g) { return g.group == group; });
  if (found == report.groups.end()) {
    found = report.groups.insert(found, {group, 0, outcome.nmse, outcome.bound});
  }
  ++found->cases;
  ++report.cases;
  if (outcome.nmse * found->bound > found->nmse * outcome.bound) {
    found->nmse = outcome.nmse;
    found->bound = outcome.bound;
  }
}

}  // namespace

Result<CheckReport> check(Device& device, const CheckOptions& options, const Clock& clock) {
  CheckReport report;
  const TimePoint begin = clock.now();
  conformance::RunOptions run_options;
  run_options.task_timeout = options.task_timeout;
  for (const Case& c : telling_cases(device.info())) {
    if (report.cases > 0 && clock.now() - begin > options.budget) {
      ++report.untold;
      continue;
    }
    ASSIGN_OR_RETURN(const Outcome outcome, run_case(device, c, run_options));
    if (!outcome.not_run.empty()) continue;
    if (!outcome.passed()) return wrong_values(device.info().name, c, outcome);
    add(report, c.group, outcome);
  }
  report.took = clock.now() - begin;
  return report;
}

}  // namespace troika::device
