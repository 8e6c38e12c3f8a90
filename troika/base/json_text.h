// JSON from elsewhere: values in messages, and the size of a text before it is parsed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika {

// A value for a message: one short line of ASCII, whatever a file holds.
std::string shown(const nlohmann::json& value);

// The error for a text that is no JSON: its message begins with `what` and tells where.
Error json_error(std::string_view text, std::string_view what);

// Far above any real text of its kind, far below what would hurt.
struct JsonBounds {
  int depth = 0;
  int64_t values = 0;
  int64_t digits = 0;  // of a number
};
// Before the parser, which bounds none of them, spends time and memory on them. kInvalidData, its
// message beginning with `what`.
Status check_json_size(std::string_view text, std::string_view what, const JsonBounds& bounds);

// The first key, in the order of the text, that its object has already; nullopt if there is none.
// `text` is JSON.
std::optional<std::string> repeated_json_key(std::string_view text);

// Of several members of an object with one name the parser keeps the last: whoever wrote them may
// have meant the first. `text` is JSON. kInvalidData, its message beginning with `what`.
Status check_json_keys(std::string_view text, std::string_view what);

}  // namespace troika
