#include "troika/base/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troika {
namespace {

Status write_directly(std::string_view what, const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.flush()) return {};
  return make_error(ErrorCode::kIo, "cannot write {} to {}: {}", what, path,
                    std::generic_category().message(errno));
}

}  // namespace

Status check_writable(std::string_view what, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  int reason = 0;
  if (fs::is_directory(path, ignored)) {
    reason = EISDIR;
  } else if (fs::exists(status) && !fs::is_regular_file(status)) {
    // The target of a link need not be there yet.
    if (access(path.c_str(), W_OK) != 0 && errno != ENOENT) reason = errno;
  } else {
    const std::string part = path + ".part";
    const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
      reason = errno;
    } else {
      close(fd);
      fs::remove(part, ignored);
    }
  }
  if (reason == 0) return {};
  return make_error(ErrorCode::kIo, "cannot write {} to {}: {}", what, path,
                    std::generic_category().message(reason));
}

Status write_file(std::string_view what, const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(what, path, text);
  const std::string part = path + ".part";
  Status written = write_directly(what, part, text);
  if (written) {
    fs::rename(part, path, error);
    if (!error) return {};
    written = make_error(ErrorCode::kIo, "cannot write {} to {}: {}", what, path, error.message());
  }
  fs::remove(part, error);
  return written;
}

}  // namespace troika
