#include "cli/version.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <string_view>
#include <vector>

#include "troika/device/cpu/kernels/kernels.h"
#include "troika_commit.h"

namespace troika::cli {

std::string version() { return TROIKA_VERSION; }
std::string build_commit() { return TROIKA_COMMIT; }
std::string compiler() { return TROIKA_COMPILER; }

std::string build_stamp() {
  struct stat facts {};
  if (stat("/proc/self/exe", &facts) != 0) facts = {};
  return fmt::format("{} {} {} {}.{:09}", version(), build_commit(), facts.st_size,
                     facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

std::string version_text() {
  std::vector<std::string_view> kernels;
  for (const auto* table : device::cpu::available_kernels()) kernels.push_back(table->name);
  return fmt::format(
      "troika {}\ncommit:   {}\ncompiler: {} ({})\nkernels:  {} (of this machine, fastest first)\n",
      version(), build_commit(), compiler(), TROIKA_BUILD_TYPE, fmt::join(kernels, ", "));
}

}  // namespace troika::cli
