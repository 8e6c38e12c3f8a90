// JSON values in messages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace troika {

// A value for a message: one short line of ASCII, whatever a file holds.
std::string shown(const nlohmann::json& value);

}  // namespace troika
