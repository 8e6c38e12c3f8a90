#include "cli/cache_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "cli/text.h"

namespace troika::cli {
namespace {

namespace fs = std::filesystem;

std::string variable(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_folder(const Environment& environment) {
  if (const std::string own = variable(environment, "TROIKA_CACHE"); !own.empty()) {
    std::error_code error;
    const fs::path absolute = fs::absolute(own, error);
    return error ? own : absolute.lexically_normal().string();
  }
  // A relative path there is to be ignored, by the specification of base directories.
  if (const std::string xdg = variable(environment, "XDG_CACHE_HOME"); xdg.starts_with('/')) {
    return xdg + "/troika";
  }
  const std::string home = variable(environment, "HOME");
  return home.starts_with('/') ? home + "/.cache/troika" : "";
}

std::string cache_folder() {
  return cache_folder([](const char* name) -> const char* { return std::getenv(name); });
}

Status check_folder_writable(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return make_error(ErrorCode::kIo, "cannot make the cache folder {}: {}", in_quotes(folder),
                      error.message());
  }
  std::string name = folder + "/writable.XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) {
    return make_error(ErrorCode::kIo, "cannot write to the cache folder {}: {}", in_quotes(folder),
                      std::generic_category().message(errno));
  }
  close(fd);
  unlink(name.c_str());
  return {};
}

}  // namespace troika::cli
