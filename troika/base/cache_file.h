// Small files of the user's cache: replaced as a whole, and read as if missing when anything but
// such a file stands there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika {

// Of a file's content; what to call it when it is written or looked for.
uint64_t fnv1a(std::string_view text);

// A name for what is remembered under `key`, whatever characters that has: "npu_x-1234abcd.json".
std::string cache_file_name(std::string_view key);

// The text of a plain file of at most `max_bytes`; nothing for whatever else may stand there. Does
// not wait for anybody.
std::optional<std::string> read_cache_file(const std::string& path, size_t max_bytes);

// Readers see the old text or the new, whoever else writes at the same time. Makes the folder. kIo.
Status write_cache_file(const std::string& folder, const std::string& name, std::string_view text);

// Removes the files of a folder that were written first, until at most `files` of at most `bytes`
// together are left. Others may do so at the same time.
void keep_newest(const std::string& folder, size_t files, uint64_t bytes);

// For how old something is, in seconds since 1970.
int64_t seconds_since_1970();
// How long ago that was, for people: "3 min ago".
std::string ago(int64_t seconds);

}  // namespace troika
