// A CheckReport as JSON, for the store and for what a probing child tells its parent.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "troika/device/check/check.h"

namespace troika::device {

nlohmann::ordered_json to_json(const CheckReport& report);
// Whatever the value is: nullopt unless it is a report.
std::optional<CheckReport> report_from_json(const nlohmann::ordered_json& value);

// Text to JSON; nullopt if it is not, or nested deeper than any of ours.
std::optional<nlohmann::ordered_json> parse_json(std::string_view text);

// Members of an object, whatever it is; a default if there is none of that type.
std::string text_of(const nlohmann::ordered_json& object, const char* key);
int64_t integer_of(const nlohmann::ordered_json& object, const char* key);
bool flag_of(const nlohmann::ordered_json& object, const char* key);

}  // namespace troika::device
