// The described chip that a user names.
#pragma once

#include <string>

#include "troika/base/result.h"
#include "troika/soc/soc.h"

namespace troika::cli {

// A name of the catalogue, or a file if it has '/' in it or '.json' at its end; `stack` as for
// soc::with_stack().
Result<soc::Soc> load_soc(const std::string& name, const std::string& stack = "default");

}  // namespace troika::cli
