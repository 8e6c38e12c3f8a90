#include "troika/base/json_text.h"

#include <nlohmann/json.hpp>

namespace troika {

using nlohmann::json;

std::string shown(const json& value) {
  constexpr size_t kMost = 60;
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  // Of a long text, the beginning; its last character may be cut in two, which dump() replaces.
  const bool is_long = value.is_string() && value.get_ref<const std::string&>().size() > kMost;
  const json beginning =
      is_long ? json(value.get_ref<const std::string&>().substr(0, kMost)) : value;
  return beginning.dump(-1, ' ', true, json::error_handler_t::replace) + (is_long ? "..." : "");
}

Status check_json_size(std::string_view text, std::string_view what, const JsonBounds& bounds) {
  int depth = 0;
  int64_t commas = 0;
  int64_t digits = 0;  // of the number that the text is in
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',') ++commas;
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (depth > bounds.depth || commas >= bounds.values || digits > bounds.digits) {
      return make_error(ErrorCode::kInvalidData,
                        "{}: nested deeper than {}, or more than {} values, or a number of more "
                        "than {} digits",
                        what, bounds.depth, bounds.values, bounds.digits);
    }
  }
  return {};
}

}  // namespace troika
