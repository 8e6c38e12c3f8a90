#include "cli/numbers.h"

#include <charconv>
#include <cmath>

#include "cli/text.h"

namespace troika::cli {
namespace {

constexpr size_t kMaxQuotedBytes = 80;  // a message stays one readable line

std::string allowed(IntegerRange range) {
  if (range.max == INT64_MAX) return fmt::format("{} or more", range.min);
  return fmt::format("{} to {}", range.min, range.max);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  if (text.size() <= kMaxQuotedBytes) return fmt::format("'{}'", printable(text));
  return fmt::format("'{}...' ({} bytes)", printable(text.substr(0, kMaxQuotedBytes)), text.size());
}

Result<int64_t> parse_integer(std::string_view what, std::string_view text, IntegerRange range) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && end == text.data() + text.size() &&
       (value < range.min || value > range.max))) {
    return make_error(ErrorCode::kInvalidArgument, "{}: {} is out of range; allowed: {}", what,
                      in_quotes(text), allowed(range));
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    return make_error(ErrorCode::kInvalidArgument, "{}: {} is not a whole number; allowed: {}",
                      what, in_quotes(text), allowed(range));
  }
  return value;
}

Result<double> parse_number(std::string_view what, std::string_view text, NumberRange range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && whole && !(value >= range.min && value <= range.max))) {
    return make_error(ErrorCode::kInvalidArgument, "{}: {} is out of range; allowed: {} to {}",
                      what, in_quotes(text), range.min, range.max);
  }
  if (error != std::errc() || !whole) {
    return make_error(ErrorCode::kInvalidArgument, "{}: {} is not a number; allowed: {} to {}",
                      what, in_quotes(text), range.min, range.max);
  }
  return value;
}

Result<bool> parse_boolean(std::string_view what, std::string_view text) {
  for (std::string_view yes : {"1", "on", "true", "yes", "enabled"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "off", "false", "no", "disabled"}) {
    if (text == no) return false;
  }
  return make_error(ErrorCode::kInvalidArgument, "{}: {} is not a switch; allowed: on, off", what,
                    in_quotes(text));
}

}  // namespace troika::cli
