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

}  // namespace troika
