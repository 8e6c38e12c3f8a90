#include "cli/default_model.h"

#include <filesystem>
#include <system_error>

namespace troika::cli {

Result<std::string> model_path(const std::string& given) {
  if (!given.empty()) return given;
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(kDefaultModel, error)) return std::string(kDefaultModel);
  // <project>/build/<preset>/troika
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path beside = program.parent_path().parent_path().parent_path() / kDefaultModel;
    if (fs::exists(beside, error)) return beside.string();
  }
  return make_error(ErrorCode::kNotFound,
                    "no model given, and the default {} is not here; run scripts/bootstrap to "
                    "install it, or name a file with -m FILE",
                    kDefaultModel);
}

}  // namespace troika::cli
