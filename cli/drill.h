// The fault drill of `troika doctor --drill`: a row for each fault, as it is found out.
#pragma once

#include "cli/console.h"
#include "troika/base/result.h"

namespace troika::cli {

// Uses the default model. kDeviceFailed if an answer did not go on as it should.
Status drill(Console& console, bool json);

}  // namespace troika::cli
