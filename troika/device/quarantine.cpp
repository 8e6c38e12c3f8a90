#include "troika/device/quarantine.h"

#include <mutex>
#include <vector>

namespace troika::device {

void quarantine(std::shared_ptr<void> thing) {
  static std::mutex mutex;
  // Not destroyed at exit either: a stuck thread may outlive main().
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(thing));
}

}  // namespace troika::device
