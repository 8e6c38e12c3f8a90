// The chain of tasks that made a pass as long as it was: the task that ended last, before it the
// one that it had waited for or that its device ran before, and so on.
#pragma once

#include <cstddef>
#include <vector>

#include "troika/base/trace.h"

namespace troika {

// Indices of events, pass by pass, in order of time. A trace tells how long a task waited, not for
// which other: that is taken to be the one of another device that ended last before its start.
std::vector<size_t> critical_path(const Trace& trace);

}  // namespace troika
