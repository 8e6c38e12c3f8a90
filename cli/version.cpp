#include "cli/version.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika_commit.h"

namespace troika::cli {

std::string version() { return TROIKA_VERSION; }
std::string build_commit() { return TROIKA_COMMIT; }
std::string compiler() { return TROIKA_COMPILER; }

std::string version_text() {
  std::vector<std::string_view> kernels;
  for (const auto* table : device::cpu::available_kernels()) kernels.push_back(table->name);
  return fmt::format(
      "troika {}\ncommit:   {}\ncompiler: {} ({})\nkernels:  {} (of this machine, fastest first)\n",
      version(), build_commit(), compiler(), TROIKA_BUILD_TYPE, fmt::join(kernels, ", "));
}

}  // namespace troika::cli
