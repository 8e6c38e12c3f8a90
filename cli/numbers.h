// Numbers as people type them: the whole text must be one number inside the allowed range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika::cli {

struct IntegerRange {
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

struct NumberRange {
  double min = 0;
  double max = 1;
};

// kInvalidArgument saying `what` (a flag or a variable), the text and what is allowed.
Result<int64_t> parse_integer(std::string_view what, std::string_view text, IntegerRange range);
Result<double> parse_number(std::string_view what, std::string_view text, NumberRange range);
// 1, on, true, yes / 0, off, false, no.
Result<bool> parse_boolean(std::string_view what, std::string_view text);

// Text for a message: shortened, control characters and broken UTF-8 made visible.
std::string in_quotes(std::string_view text);

}  // namespace troika::cli
