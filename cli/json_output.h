// JSON on stdout: valid UTF-8 whatever the model or the file holds.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace troika::cli {

using Json = nlohmann::ordered_json;

// One value and a newline; `indent` < 0 for one line. Bytes that are not UTF-8 become U+FFFD.
Status print_json(Console& console, const Json& value, int indent = -1);
std::string to_text(const Json& value, int indent = -1);

}  // namespace troika::cli
