// Values as text: as printed, as shown inside lists (Python's repr), and as JSON. Text inside keeps
// its origin; what the printing adds counts as the template's.
#pragma once

#include <cstdint>
#include <optional>

#include "troika/base/result.h"
#include "troika/model/jinja_value.h"

namespace troika::model::jinja {

// As `{{ value }}` prints it. Texts are returned as they are.
Result<const Text*> to_text(Heap& heap, const Value& value);
Result<Value> to_text_value(Heap& heap, const Value& value);

// "1.0", "1e+16", "nan".
std::string format_float(double value);

// A number as from_chars reads it, but infinite or 0 where a double cannot hold it.
std::optional<double> parse_double(std::string_view text);

struct JsonStyle {
  std::optional<int64_t> indent;
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
  bool sort_keys = false;
};
Result<Value> to_json(Heap& heap, const Value& value, const JsonStyle& style);

}  // namespace troika::model::jinja
