// A chip's description of any bytes is either an error of one short line, or a description that is
// the same when written and read again, and for which every cost is finite.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/soc/bandwidth.h"
#include "troika/soc/soc.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
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
  return 0;
}
