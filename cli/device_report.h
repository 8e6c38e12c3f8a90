// Devices for people and for programs, as `devices` and `doctor` show them.
#pragma once

#include <string>

#include "cli/device_prober.h"
#include "cli/json_output.h"

namespace troika::cli {

// "ok", "missing" or "bad".
std::string_view status_of(const TriedDevice& device);
// What is wrong with it, and since when if that is known from an earlier run; empty if nothing is.
std::string reason_of(const TriedDevice& device);

// {"name", facts if it opened, "error" and "status" if it is not good}
Json device_json(const TriedDevice& device);
// A paragraph of facts, or one line that says why there are none.
std::string device_text(const TriedDevice& device);

}  // namespace troika::cli
