#include "troika/model/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace troika::model {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

tl::unexpected<Error> failed(const std::string& path, const char* what) {
  const int error = errno;
  return make_error(ErrorCode::kIo, "{}: {} failed: {}", path, what,
                    std::generic_category().message(error));
}

// The name behind symbolic links; the name itself if there is no such file yet.
Result<std::string> resolve(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: exists and is not a regular file; it is not overwritten", path);
    }
    char* real = ::realpath(path.c_str(), nullptr);
    if (real == nullptr) return failed(path, "resolving the name");
    std::string resolved(real);
    ::free(real);
    return resolved;
  }
  if (errno != ENOENT) return failed(path, "looking it up");
  if (::lstat(path.c_str(), &info) == 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: is a symbolic link to nothing", path);
  }
  return path;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument, "'{}' is no file name", path);
  }
  ASSIGN_OR_RETURN(std::string resolved, resolve(path));
  std::string temporary = fmt::format("{}.{}.tmp", resolved, ::getpid());
  constexpr mode_t kMode = 0666;  // less the process's mask
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd < 0) {
    const int error = errno;
    const bool no_folder = error == ENOENT || error == ENOTDIR;
    return make_error(no_folder ? ErrorCode::kNotFound : ErrorCode::kIo,
                      "{}: cannot be created: {}", temporary,
                      std::generic_category().message(error));
  }
  return OutputFile(fd, std::move(resolved), std::move(temporary));
}

OutputFile::OutputFile(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {
  buffer_.reserve(kBufferBytes);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Status OutputFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(temporary_, "writing");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status OutputFile::flush() {
  RETURN_IF_ERROR(write_through(buffer_));
  buffer_.clear();
  return {};
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) RETURN_IF_ERROR(flush());
  if (bytes.size() >= kBufferBytes) return write_through(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Status OutputFile::write_zeros(uint64_t n) {
  constexpr std::array<std::byte, 4096> kZeros{};
  while (n > 0) {
    const size_t part = std::min<uint64_t>(n, kZeros.size());
    RETURN_IF_ERROR(write(std::span(kZeros.data(), part)));
    n -= part;
  }
  return {};
}

Status OutputFile::commit() {
  RETURN_IF_ERROR(flush());
  const int fd = std::exchange(fd_, -1);
  // Some file systems report a full disk only here.
  if (::close(fd) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    auto error = failed(path_, "finishing the file");
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

}  // namespace troika::model
