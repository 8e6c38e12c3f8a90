#include "troika/model/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace troika::model {
namespace {

std::string errno_text(int error) { return std::generic_category().message(error); }

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

class FileSource : public ByteSource {
 public:
  FileSource(int fd, uint64_t size, std::string path)
      : fd_(fd), size_(size), path_(std::move(path)) {}
  ~FileSource() override { ::close(fd_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  uint64_t size() const override { return size_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    constexpr size_t kMaxRead = size_t{1} << 30;  // one read() moves less than 2 GiB
    while (!out.empty()) {
      const size_t wanted = std::min(out.size(), kMaxRead);
      const ssize_t got = ::pread(fd_, out.data(), wanted, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return make_error(ErrorCode::kIo, "{}: reading at byte {} failed: {}", path_, offset,
                          errno_text(errno));
      }
      if (got == 0) {
        return make_error(ErrorCode::kIo,
                          "{}: the file ends at byte {} but had {} bytes when it was opened; do "
                          "not change it while it is read",
                          path_, offset, size_);
      }
      offset += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
    return {};
  }

 private:
  int fd_;
  uint64_t size_;
  std::string path_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return make_error(ErrorCode::kIo, "reading {} bytes at byte {} goes past the end at byte {}",
                        out.size(), offset, bytes_.size());
    }
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument, "a file name cannot contain a NUL byte");
  }
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    const bool absent = error == ENOENT || error == ENOTDIR;
    // A socket or a device without a driver.
    const bool special = error == ENXIO || error == ENODEV;
    const ErrorCode code = absent    ? ErrorCode::kNotFound
                           : special ? ErrorCode::kInvalidArgument
                                     : ErrorCode::kIo;
    return make_error(code, "{}: cannot be opened: {}", path, errno_text(error));
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return make_error(ErrorCode::kIo, "{}: {}", path, errno_text(error));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return make_error(ErrorCode::kInvalidArgument, "{}: is {}; a regular file is needed", path,
                      kind_of(info.st_mode));
  }
  return std::make_unique<FileSource>(fd, static_cast<uint64_t>(info.st_size), path);
}

std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

}  // namespace troika::model
