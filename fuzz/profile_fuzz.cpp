// A profile of any bytes is either an error of one short line, or a record that is the same when
// written and read again, and of which every cost is finite.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/cost/profiled_cost.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool sound(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troika;
  auto profile = profile::from_json({reinterpret_cast<const char*>(data), size});
  if (!profile) {
    const std::string& message = profile.error().message;
    require(!message.empty() && message.size() < 1500 && message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string text = profile::to_json(*profile);
  const auto again = profile::from_json(text);
  require(again.has_value() && profile::to_json(*again) == text);
  const auto cost = cost::ProfiledCost::create(std::move(*profile));
  if (!cost) return 0;
  for (size_t i = 0; i < cost->devices().size(); ++i) {
    for (const int64_t extent : {int64_t{1}, int64_t{33}, soc::kMaxExtent}) {
      const auto work = cost->product(i, {extent, extent, extent});
      require(work.has_value() && sound(work->work_us()) && sound(work->demand_gbps()));
    }
    require(sound(cost->elementwise(i, 1e15).work_us()) && sound(cost->build_us(i, 1024)));
    require(sound(cost->launch_us(i, true)));
  }
  require(sound(cost->join_us()) && sound(cost->shared_gbps(1)));
  return 0;
}
