// Writes a file as a whole: what stood there before stays until the new text is complete.
#pragma once

#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika {

// A regular file, also behind a link, through a temporary one beside it, which gets its
// permissions; a pipe, a device or a link to nothing directly, as it is. `what` names the contents
// in the error ("the trace").
Status write_file(std::string_view what, const std::string& path, std::string_view text);

// Whether both names lead to one regular file, which need not be there yet: through links, by other
// names of a folder. Devices and pipes are never the same.
bool is_same_file(const std::string& one, const std::string& other);

// Whether write_file() would find a place for it, so that this can be told before hours of work. A
// place may still vanish or be full.
Status check_writable(std::string_view what, const std::string& path);

}  // namespace troika
