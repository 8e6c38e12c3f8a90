// A stored plan of any bytes is either an error of one short line, or a record that is the same
// when written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/engine/stored_plan.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troika;
  const auto stored = engine::stored_plan_from_json({reinterpret_cast<const char*>(data), size});
  if (!stored) {
    const std::string& message = stored.error().message;
    require(!message.empty() && message.size() < 1500 && message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string text = engine::to_json(*stored);
  const auto again = engine::stored_plan_from_json(text);
  require(again.has_value() && engine::to_json(*again) == text);
  return 0;
}
