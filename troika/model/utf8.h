// UTF-8 one character at a time, over bytes that may be anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troika::model {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// What stands at the beginning of a text. An invalid sequence is as long as the bytes that could
// still have begun a character (Unicode's "maximal subpart"), at least one.
struct Utf8Char {
  uint32_t code_point = 0;
  size_t length = 0;
  bool valid = false;
  bool cut_off = false;  // invalid only because the text ends; more bytes could make it valid
};

// The first character of `text`, which must not be empty.
Utf8Char next_utf8(std::string_view text);

// The length of the longest beginning of `text` that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);

void append_utf8(uint32_t code_point, std::string& out);

}  // namespace troika::model
