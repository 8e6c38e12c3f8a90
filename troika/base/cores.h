// The cores that this process may use, and pinning of threads to them.
#pragma once

#include <span>
#include <vector>

#include "troika/base/result.h"

namespace troika {

// Numbers of the cores in the process's affinity mask, ascending.
std::vector<int> allowed_cores();

// Binds the calling thread to `cores`. kInvalidArgument if the system refuses.
Status pin_this_thread(std::span<const int> cores);

}  // namespace troika
