// A trace of any bytes is either an error of one short line, or a trace that is the same when
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/base/trace.h"

namespace {

using namespace troika;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = trace_from_chrome_json({reinterpret_cast<const char*>(data), size});
  if (!trace) {
    require(trace.error().code == ErrorCode::kInvalidData);
    require(!trace.error().message.empty() && trace.error().message.size() < 1000);
    require(trace.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const std::string text = to_chrome_json(*trace);
  const auto again = trace_from_chrome_json(text);
  require(again.has_value() && again->events.size() == trace->events.size());
  require(to_chrome_json(*again) == text);
  return 0;
}
