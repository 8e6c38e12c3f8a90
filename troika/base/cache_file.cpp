#include "troika/base/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace troika {
namespace {

namespace fs = std::filesystem;

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

tl::unexpected<Error> cannot_write(const std::string& path, int code) {
  return make_error(ErrorCode::kIo, "cannot write {}: {}", path,
                    std::generic_category().message(code));
}

}  // namespace

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string cache_file_name(std::string_view key) {
  constexpr size_t kReadable = 40;
  std::string name;
  for (const char c : key.substr(0, kReadable)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain || c == '-' ? c : '_';
  }
  return fmt::format("{}-{:016x}.json", name, fnv1a(key));
}

std::optional<std::string> read_cache_file(const std::string& path, size_t max_bytes) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file.fd() < 0 || fstat(file.fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  std::string text(max_bytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(file.fd(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > max_bytes) return std::nullopt;
  text.resize(size);
  return text;
}

Status write_cache_file(const std::string& folder, const std::string& name, std::string_view text) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return make_error(ErrorCode::kIo, "cannot make {}: {}", folder, error.message());
  const std::string path = folder + "/" + name;
  std::string part = path + ".XXXXXX";
  const OpenFile file(mkostemp(part.data(), O_CLOEXEC));
  if (file.fd() < 0) return cannot_write(path, errno);
  if (write_all(file.fd(), text) && rename(part.c_str(), path.c_str()) == 0) return {};
  const int code = errno;
  unlink(part.c_str());
  return cannot_write(path, code);
}

void keep_newest(const std::string& folder, size_t files, uint64_t bytes) {
  struct Entry {
    fs::file_time_type written;
    uint64_t bytes = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code vanished;
    if (fs::symlink_status(at->path(), vanished).type() != fs::file_type::regular) continue;
    const Entry entry{fs::last_write_time(at->path(), vanished),
                      fs::file_size(at->path(), vanished), at->path()};
    if (!vanished) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.written > b.written; });
  uint64_t held = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    held += entries[i].bytes;
    if (i >= files || held > bytes) fs::remove(entries[i].path, error);
  }
}

std::string ago(int64_t seconds) {
  if (seconds < 120) return fmt::format("{} s ago", std::max<int64_t>(seconds, 0));
  if (seconds < 7200) return fmt::format("{} min ago", seconds / 60);
  return fmt::format("{} h ago", seconds / 3600);
}

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace troika
