#include "troika/model/byte_map.h"

#include <array>

#include "troika/model/utf8.h"

namespace troika::model {
namespace {

constexpr uint32_t kFirstMoved = 256;  // unprintable bytes are named by U+0100 and upwards
constexpr uint32_t kMovedBytes = 68;   // 0-32, 127-160 and 173

constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteMap {
  std::array<std::string, 256> name;
  std::array<uint8_t, kMovedBytes> moved;  // the byte named by U+0100 + index

  ByteMap() : moved{} {
    uint32_t n_moved = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (is_printable(byte)) {
        append_utf8(byte, name[byte]);
      } else {
        append_utf8(kFirstMoved + n_moved, name[byte]);
        moved[n_moved++] = static_cast<uint8_t>(byte);
      }
    }
  }
};

const ByteMap& byte_map() {
  static const ByteMap map;
  return map;
}

}  // namespace

std::string_view byte_name(uint8_t byte) { return byte_map().name[byte]; }

void append_named_bytes(std::string_view name, std::string& out) {
  const ByteMap& map = byte_map();
  while (!name.empty()) {
    const Utf8Char next = next_utf8(name);
    const uint32_t c = next.code_point;
    if (next.valid && c < 256 && is_printable(c)) {
      out += static_cast<char>(c);
    } else if (next.valid && c >= kFirstMoved && c < kFirstMoved + kMovedBytes) {
      out += static_cast<char>(map.moved[c - kFirstMoved]);
    } else {
      out += name.substr(0, next.length);
    }
    name.remove_prefix(next.length);
  }
}

}  // namespace troika::model
