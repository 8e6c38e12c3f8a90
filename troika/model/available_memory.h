// How much memory this process can still take.
#pragma once

#include <cstdint>
#include <optional>

namespace troika::model {

// The least of what the machine has available and what the limits of the process's control groups
// leave, file cache that can be dropped included. nullopt where nothing says.
std::optional<uint64_t> available_memory_bytes();

}  // namespace troika::model
