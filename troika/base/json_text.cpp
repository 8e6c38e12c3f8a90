#include "troika/base/json_text.h"

#include <nlohmann/json.hpp>

namespace troika {

using nlohmann::json;

namespace {

// Keeps nothing but where the text stops being JSON.
class ErrorPlace final : public json::json_sax_t {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(json::number_integer_t) override { return true; }
  bool number_unsigned(json::number_unsigned_t) override { return true; }
  bool number_float(json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool key(std::string&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_object() override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    position_ = position;
    return false;
  }
  size_t position() const { return position_; }

 private:
  size_t position_ = 0;
};

}  // namespace

Error json_error(std::string_view text, std::string_view what) {
  ErrorPlace place;
  json::sax_parse(text, &place);
  return {ErrorCode::kInvalidData,
          fmt::format("{}: not valid JSON at byte {}", what, place.position())};
}

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
