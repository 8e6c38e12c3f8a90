#include "troika/base/clock.h"

namespace troika {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::duration_cast<TimePoint>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace troika
