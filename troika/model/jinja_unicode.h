// Characters of UTF-8 text as the template language counts them: code points, where a byte that is
// not UTF-8 counts as one character of its own and is kept as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troika::model::jinja {

inline constexpr int32_t kInvalidByte = -1;

// The first character of `text` (not empty): its code point or kInvalidByte, and its bytes.
struct Character {
  int32_t code = kInvalidByte;
  size_t size = 1;
};
Character first_character(std::string_view text);
Character last_character(std::string_view text);

bool is_ascii(std::string_view text);
size_t count_characters(std::string_view text);
// Byte offset of the character with this index; text.size() past the end.
size_t offset_of(std::string_view text, size_t index);

bool is_space(int32_t code);      // Python's str.isspace
bool is_printable(int32_t code);  // Python's str.isprintable
bool is_cased(int32_t code);      // upper, lower or title case
bool is_upper(int32_t code);
bool is_lower(int32_t code);

// Bytes of white space at the begin and at the end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

void append_utf8(std::string& out, uint32_t code);
void append_upper(std::string& out, int32_t code);
void append_lower(std::string& out, int32_t code);

}  // namespace troika::model::jinja
