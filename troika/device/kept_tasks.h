// How many tasks' times a device keeps.
#pragma once

#include <cstdint>

namespace troika::device {

// Of its last tasks; a power of two. A pass gives a device fewer (plan/lower.h), for they are read
// when it is over.
inline constexpr int64_t kKeptTasks = 16384;

}  // namespace troika::device
