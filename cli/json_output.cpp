#include "cli/json_output.h"

namespace troika::cli {

std::string to_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Status print_json(Console& console, const Json& value, int indent) {
  return console.print(to_text(value, indent) + "\n");
}

}  // namespace troika::cli
