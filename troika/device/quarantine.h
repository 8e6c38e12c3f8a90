// Quarantine: what a stuck device may still write to is kept until the process ends. A call into a
// driver that hangs cannot be killed.
#pragma once

#include <memory>

namespace troika::device {

// Never destroys it. Any thread may call it.
void quarantine(std::shared_ptr<void> thing);

}  // namespace troika::device
