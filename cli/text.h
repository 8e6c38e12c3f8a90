// Text from files, models and people made safe to show: UTF-8 repair, visible control characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::cli {

// `text` with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// One line without control characters: "\n", "\t", "\x1b" as written here. Keeps a file's strings
// from moving the cursor of a terminal.
std::string printable(std::string_view text);

// The first `max_bytes` of printable(text) at a character's border, with "..." if it was longer.
std::string shortened(std::string_view text, size_t max_bytes);

// \n, \t, \r, \\, \", \' and \xHH replaced by what they stand for; others stay as they are.
std::string unescape(std::string_view text);

// Where a flag takes a name or a file: whether it is one, with '/' in its path or '.json' at its
// end.
bool is_file_name(std::string_view name);

// More text than any context holds; keeps /dev/zero from filling the memory.
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;

// The whole file, or standard input for "-"; `stdin_hint` tells how to ask for the latter.
Result<std::string> read_text(const std::string& path, size_t max_bytes = kMaxTextBytes,
                              std::string_view stdin_hint = "-f -");

// The nearest of `names` to `typed` if it is near enough to be what was meant; else empty.
std::string nearest(std::string_view typed, const std::vector<std::string>& names);

}  // namespace troika::cli
