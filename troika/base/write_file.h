// Writes a file as a whole: what stood there before stays until the new text is complete.
#pragma once

#include <string>
#include <string_view>

#include "troika/base/result.h"

namespace troika {

// A regular file through a temporary one beside it; a pipe, a device or a link directly, as it is.
// `what` names the contents in the error ("the trace").
Status write_file(std::string_view what, const std::string& path, std::string_view text);

// Whether write_file() would find a place for it, so that this can be told before hours of work. A
// place may still vanish or be full.
Status check_writable(std::string_view what, const std::string& path);

}  // namespace troika
