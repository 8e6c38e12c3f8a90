#include "troika/base/json_text.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

namespace troika {

using nlohmann::json;

namespace {

// Looks at a text piece by piece and keeps nothing of it.
class Passing : public json::json_sax_t {
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
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }
};

// Where the text stops being JSON.
class ErrorPlace final : public Passing {
 public:
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    position_ = position;
    return false;
  }
  size_t position() const { return position_; }

 private:
  size_t position_ = 0;
};

// The first key that its object has already.
class RepeatedKey final : public Passing {
 public:
  bool start_object(size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return true;
    name_ = name;
    return false;
  }
  const std::optional<std::string>& name() const { return name_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects around
  std::optional<std::string> name_;
};

}  // namespace

Error json_error(std::string_view text, std::string_view what) {
  ErrorPlace place;
  json::sax_parse(text, &place);
  return {ErrorCode::kInvalidData,
          fmt::format("{}: not valid JSON at byte {}", what, place.position())};
}

std::optional<std::string> repeated_json_key(std::string_view text) {
  RepeatedKey repeated;
  json::sax_parse(text, &repeated);
  return repeated.name();
}

Status check_json_keys(std::string_view text, std::string_view what) {
  const std::optional<std::string> twice = repeated_json_key(text);
  if (!twice) return {};
  return make_error(ErrorCode::kInvalidData, "{}: {} stands twice in one object: leave one", what,
                    shown(*twice));
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
    // The parser would take it for the end, and not look at what follows.
    if (c == '\0')
      return make_error(ErrorCode::kInvalidData, "{}: not valid JSON at byte {}", what, i + 1);
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',') ++commas;
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (depth > bounds.depth) {
      return make_error(ErrorCode::kInvalidData, "{}: nested deeper than {} at byte {}", what,
                        bounds.depth, i + 1);
    }
    if (commas >= bounds.values) {
      return make_error(ErrorCode::kInvalidData, "{}: more than {} values at byte {}", what,
                        bounds.values, i + 1);
    }
    if (digits > bounds.digits) {
      return make_error(ErrorCode::kInvalidData, "{}: a number of more than {} digits at byte {}",
                        what, bounds.digits, i + 1);
    }
  }
  return {};
}

}  // namespace troika
