// Published figures of any bytes are either an error of one short line, or cases whose every number
// is within its bounds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "troika/published/paper.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_run(const troika::published::Run& run) {
  require(!run.soc.empty() && !run.stack.empty());
  for (const int64_t prompt : run.prompts) {
    require(prompt >= 1 && prompt <= troika::published::kMaxTokens);
  }
  require(run.outputs >= 0 && run.inputs >= 0 && run.tokens >= 0 && run.output >= 1);
  if (run.load) require(run.load->part >= 0 && run.load->part < 1 && run.load->gbps >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace troika;
  const auto paper = published::from_json({reinterpret_cast<const char*>(data), size});
  if (!paper) {
    const std::string& message = paper.error().message;
    require(!message.empty() && message.size() < 1000 && message.find('\n') == std::string::npos);
    return 0;
  }
  require(!paper->cases.empty() && paper->cases.size() <= published::kMaxCases);
  for (const published::Case& one : paper->cases) {
    require(std::isfinite(one.published) && one.published >= 0);
    require(!one.published_to || *one.published_to >= one.published);
    check_run(one.input);
    if (one.against) check_run(*one.against);
  }
  return 0;
}
