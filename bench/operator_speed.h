// How fast a device computes one operator alone, at the shapes of SmolLM2-135M.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "troika/device/conformance/catalogue.h"

namespace troika::bench {

// An operator with one type of weights or of the KV cache.
struct TimedOperator {
  std::string op;
  std::string type;
  // The same for a prompt and for one token after it.
  device::conformance::Case prompt;
  device::conformance::Case token;
};

inline constexpr int64_t kTimedRows = 128;

std::vector<TimedOperator> timed_operators();

// Rows that the device computes in a second, the best of a few tries. kUnsupported if it does not
// compute the operator.
Result<double> rows_per_second(device::Device& device, const device::conformance::Case& c);

}  // namespace troika::bench
