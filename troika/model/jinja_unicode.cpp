#include "troika/model/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace troika::model::jinja {

Character first_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto size = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4));
  const utf8proc_ssize_t used =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), size, &code);
  if (used <= 0) return {};
  return {code, static_cast<size_t>(used)};
}

Character last_character(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    const Character character = first_character(text.substr(text.size() - size));
    if (character.code != kInvalidByte && character.size == size) return character;
  }
  return {};
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all = static_cast<unsigned char>(all | static_cast<unsigned char>(c));
  return all < 0x80;
}

size_t count_characters(std::string_view text) {
  if (is_ascii(text)) return text.size();
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(first_character(text).size);
  return count;
}

size_t offset_of(std::string_view text, size_t index) {
  if (is_ascii(text)) return std::min(index, text.size());
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) {
    offset += first_character(text.substr(offset)).size;
  }
  return offset;
}

bool is_space(int32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_printable(int32_t code) {
  if (code == ' ') return true;
  if (code == kInvalidByte) return false;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(int32_t code) {
  return code != kInvalidByte && utf8proc_category(code) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(int32_t code) {
  return code != kInvalidByte && utf8proc_category(code) == UTF8PROC_CATEGORY_LL;
}

bool is_cased(int32_t code) {
  return is_upper(code) || is_lower(code) ||
         (code != kInvalidByte && utf8proc_category(code) == UTF8PROC_CATEGORY_LT);
}

size_t leading_space(std::string_view text) {
  size_t size = 0;
  while (size < text.size()) {
    const Character character = first_character(text.substr(size));
    if (!is_space(character.code)) break;
    size += character.size;
  }
  return size;
}

size_t trailing_space(std::string_view text) {
  size_t size = 0;
  while (size < text.size()) {
    const Character character = last_character(text.substr(0, text.size() - size));
    if (!is_space(character.code)) break;
    size += character.size;
  }
  return size;
}

void append_utf8(std::string& out, uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

void append_upper(std::string& out, int32_t code) {
  // The characters of common text whose upper case is longer than one character.
  switch (code) {
    case 0xdf:
      out += "SS";
      return;
    case 0xfb00:
      out += "FF";
      return;
    case 0xfb01:
      out += "FI";
      return;
    case 0xfb02:
      out += "FL";
      return;
    case 0xfb03:
      out += "FFI";
      return;
    case 0xfb04:
      out += "FFL";
      return;
    case 0xfb05:
    case 0xfb06:
      out += "ST";
      return;
    default:
      append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(code)));
  }
}

void append_lower(std::string& out, int32_t code) {
  if (code == 0x130) {
    out += "i\xcc\x87";  // dotted capital I: i and a combining dot
    return;
  }
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(code)));
}

}  // namespace troika::model::jinja
