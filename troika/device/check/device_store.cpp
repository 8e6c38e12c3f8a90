#include "troika/device/check/device_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "troika/device/check/report_json.h"

namespace troika::device {
namespace {

using json = nlohmann::ordered_json;

// Far above a real record.
constexpr size_t kMaxBytes = size_t{64} << 10;
constexpr int kFormat = 1;
// A device that was bad is tried again after this, for its driver may have been mended meanwhile.
constexpr int64_t kBadForSeconds = 24 * 3600;

std::string system_message(int code) { return std::generic_category().message(code); }

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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

// A plain file of a record's size; nothing for anything else that may stand there.
std::optional<std::string> read_small_file(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file.fd() < 0 || fstat(file.fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  std::string text(kMaxBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(file.fd(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > kMaxBytes) return std::nullopt;
  text.resize(size);
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Readers see the old text or the new, whoever else writes at the same time.
Status replace_file(const std::string& path, std::string_view text) {
  std::string part = path + ".XXXXXX";
  const OpenFile file(mkostemp(part.data(), O_CLOEXEC));
  if (file.fd() < 0) {
    return make_error(ErrorCode::kIo, "cannot write {}: {}", path, system_message(errno));
  }
  if (write_all(file.fd(), text) && rename(part.c_str(), path.c_str()) == 0) return {};
  const int code = errno;
  unlink(part.c_str());
  return make_error(ErrorCode::kIo, "cannot write {}: {}", path, system_message(code));
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string device_key(const DeviceSpec& spec) {
  std::string key = spec.instance.empty() ? spec.name : spec.name + ":" + spec.instance;
  for (const DeviceSpec& wrapped : spec.wrapped) {
    key += ':';
    key += device_key(wrapped);
  }
  return key;
}

// Names of devices may hold what names of files may not.
std::string DeviceStore::path(const std::string& key) const {
  constexpr size_t kReadable = 40;
  std::string name;
  for (const char c : key.substr(0, kReadable)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain || c == '-' ? c : '_';
  }
  return fmt::format("{}/devices/{}-{:016x}.json", folder_, name, fnv1a(key));
}

std::optional<DeviceRecord> DeviceStore::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::optional<std::string> text = read_small_file(path(key));
  if (!text) return std::nullopt;
  const std::optional<json> value = parse_json(*text);
  if (!value || integer_of(*value, "format") != kFormat || text_of(*value, "device") != key ||
      text_of(*value, "build") != build_) {
    return std::nullopt;
  }
  DeviceRecord record;
  record.version = text_of(*value, "version");
  record.time = integer_of(*value, "time");
  record.good = flag_of(*value, "good");
  record.kind = text_of(*value, "kind");
  record.message = text_of(*value, "message");
  const int64_t now = seconds_since_1970();
  // A clock that was set back says nothing about how old it is.
  if (record.time > now) return std::nullopt;
  if (!record.good) {
    return now - record.time < kBadForSeconds ? std::optional(record) : std::nullopt;
  }
  const std::optional<CheckReport> report =
      report_from_json(value->value("report", json::object()));
  if (!report) return std::nullopt;
  record.report = *report;
  return record;
}

Status DeviceStore::save(const std::string& key, const DeviceRecord& record) const {
  if (folder_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder_ + "/devices", error);
  if (error) {
    return make_error(ErrorCode::kIo, "cannot make {}/devices: {}", folder_, error.message());
  }
  json value = {{"format", kFormat},
                {"device", key},
                {"build", build_},
                {"version", record.version},
                {"time", seconds_since_1970()},
                {"good", record.good}};
  if (record.good) value["report"] = to_json(record.report);
  if (!record.good) value["kind"] = record.kind;
  if (!record.good) value["message"] = record.message;
  return replace_file(path(key), value.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
}

void DeviceStore::forget(const std::string& key) const {
  if (!folder_.empty()) unlink(path(key).c_str());
}

Result<CheckReport> check_once(Device& device, const std::string& key, const DeviceStore& store,
                               bool* remembered) {
  const std::optional<DeviceRecord> known = store.find(key);
  const bool same = known && !known->version.empty() && known->version == device.info().version;
  if (remembered != nullptr) *remembered = same;
  if (same && known->good) return known->report;
  if (same) return tl::unexpected<Error>(Error{ErrorCode::kDeviceFailed, known->message});
  Result<CheckReport> report = check(device);
  DeviceRecord record;
  record.version = device.info().version;
  record.good = report.has_value();
  if (report) record.report = *report;
  if (!report) record.kind = "wrong";
  if (!report) record.message = report.error().message;
  static_cast<void>(store.save(key, record));
  return report;
}

}  // namespace troika::device
