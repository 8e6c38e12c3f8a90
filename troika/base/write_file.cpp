#include "troika/base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace troika {
namespace {

tl::unexpected<Error> cannot_write(std::string_view what, const std::string& path, int reason) {
  return make_error(ErrorCode::kIo, "cannot write {} to {}: {}", what, path,
                    std::generic_category().message(reason));
}

// Behind links, if there is a regular file: that is written, and the links stay.
std::string behind_links(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_symlink(path, error) || !fs::is_regular_file(path, error)) return path;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

// What was for few eyes stays so.
void keep_mode(int fd, const std::string& path) {
  struct stat old {};
  if (stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode)) fchmod(fd, old.st_mode & 0777);
}

// Opens a new file beside `path`. Nothing that stands there is touched, not even by a link.
int open_part(const std::string& path, std::string& part) {
  constexpr int kTries = 100;
  int fd = -1;
  for (int i = 0; i < kTries; ++i) {
    part = fmt::format("{}.{}-{}.part", path, getpid(), i);
    fd = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) break;
  }
  return fd;
}

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

Status write_directly(std::string_view what, const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.flush()) return {};
  return cannot_write(what, path, errno);
}

}  // namespace

bool is_same_file(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(one, error);
  if (fs::exists(status) != fs::exists(other, error)) return false;
  if (fs::exists(status)) return fs::is_regular_file(status) && fs::equivalent(one, other, error);
  const fs::path path = fs::weakly_canonical(fs::absolute(one, error), error);
  return !error && path == fs::weakly_canonical(fs::absolute(other, error), error);
}

Status check_writable(std::string_view what, const std::string& given) {
  namespace fs = std::filesystem;
  const std::string path = behind_links(given);
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  int reason = 0;
  if (fs::is_directory(path, ignored)) {
    reason = EISDIR;
  } else if (fs::exists(status) && !fs::is_regular_file(status)) {
    // The target of a link need not be there yet.
    if (access(path.c_str(), W_OK) != 0 && errno != ENOENT) reason = errno;
  } else {
    std::string part;
    const int fd = open_part(path, part);
    if (fd < 0) {
      reason = errno;
    } else {
      close(fd);
      fs::remove(part, ignored);
    }
  }
  if (reason == 0) return {};
  return cannot_write(what, given, reason);
}

Status write_file(std::string_view what, const std::string& given, std::string_view text) {
  namespace fs = std::filesystem;
  const std::string path = behind_links(given);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(what, path, text);
  std::string part;
  const int fd = open_part(path, part);
  if (fd < 0) return cannot_write(what, given, errno);
  keep_mode(fd, path);
  int reason = write_all(fd, text);
  if (close(fd) != 0 && reason == 0) reason = errno;
  if (reason == 0 && rename(part.c_str(), path.c_str()) != 0) reason = errno;
  if (reason == 0) return {};
  fs::remove(part, error);
  return cannot_write(what, given, reason);
}

}  // namespace troika
