// The map of byte-level BPE between bytes and printable characters: token names in a vocabulary
// are written with one character for each byte, so that none holds a space or a control byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troika::model {

// The name, in UTF-8, of one byte: "a" for 'a', "Ġ" (U+0120) for the space.
std::string_view byte_name(uint8_t byte);

// Appends the bytes that a token's name stands for. Characters that name no byte (a special
// token may hold any) are appended as they are, and so are bytes that are not UTF-8.
void append_named_bytes(std::string_view name, std::string& out);

}  // namespace troika::model
