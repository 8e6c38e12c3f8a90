// A chip's description of any bytes is either an error of one short line, or a description that is
// the same when written and read again, and for which every cost is finite.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/soc/bandwidth.h"
#include "troika/soc/execution.h"
#include "troika/soc/soc.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool sound(double value) { return std::isfinite(value) && value >= 0; }

void check_costs(const troika::soc::Unit& unit) {
  using namespace troika;
  for (const soc::Path& path : unit.paths) {
    for (const int64_t extent : {int64_t{1}, int64_t{33}, soc::kMaxExtent}) {
      for (const bool weight_stationary : {false, true}) {
        const soc::Product product{path.from_tokens, extent, extent,
                                   path.types[0],    16,     weight_stationary};
        const auto work = soc::product_work(unit, product);
        require(work.has_value() && sound(work->work_us()) && sound(work->bytes));
        require(sound(work->fixed_us) && sound(work->demand_gbps()));
      }
    }
  }
  require(sound(soc::build_us(unit, soc::kMaxExtent)));
  require(sound(soc::elementwise_work(unit, 1e15).work_us()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troika;
  const auto soc = soc::from_json({reinterpret_cast<const char*>(data), size});
  if (!soc) {
    const std::string& message = soc.error().message;
    require(!message.empty() && message.size() < 1000 && message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string text = soc::to_json(*soc);
  const auto again = soc::from_json(text);
  require(again.has_value() && soc::to_json(*again) == text);
  const soc::SharedBandwidth shared(*soc);
  for (uint32_t mask = 1; mask < 1u << soc->units.size(); ++mask) {
    require(shared.total(mask) > 0 && shared.total(mask) <= soc->memory.reachable);
  }
  for (const soc::Unit& unit : soc->units) check_costs(unit);
  for (const soc::Stack& stack : soc->stacks) {
    const auto other = soc::with_stack(*soc, stack.name);
    require(other.has_value() && soc::from_json(soc::to_json(*other)).has_value());
    for (const soc::Unit& unit : other->units) check_costs(unit);
  }
  return 0;
}
