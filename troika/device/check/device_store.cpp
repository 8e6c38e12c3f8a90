#include "troika/device/check/device_store.h"

#include <unistd.h>

#include "troika/base/cache_file.h"
#include "troika/device/check/report_json.h"

namespace troika::device {
namespace {

using json = nlohmann::ordered_json;

// Far above a real record.
constexpr size_t kMaxBytes = size_t{64} << 10;
constexpr int kFormat = 1;
// A device that was bad is tried again after this, for its driver may have been mended meanwhile.
constexpr int64_t kBadForSeconds = 24 * 3600;

}  // namespace

std::string device_key(const DeviceSpec& spec, bool int8_activations) {
  std::string key = spec.instance.empty() ? spec.name : spec.name + ":" + spec.instance;
  for (const DeviceSpec& wrapped : spec.wrapped) {
    key += ':';
    key += device_key(wrapped);
  }
  if (int8_activations) key += " int8";
  return key;
}

std::string DeviceStore::path(const std::string& key) const {
  return fmt::format("{}/devices/{}", folder_, cache_file_name(key));
}

std::optional<DeviceRecord> DeviceStore::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::optional<std::string> text = read_cache_file(path(key), kMaxBytes);
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
  json value = {{"format", kFormat},
                {"device", key},
                {"build", build_},
                {"version", record.version},
                {"time", seconds_since_1970()},
                {"good", record.good}};
  if (record.good) value["report"] = to_json(record.report);
  if (!record.good) value["kind"] = record.kind;
  if (!record.good) value["message"] = record.message;
  return write_cache_file(folder_ + "/devices", cache_file_name(key),
                          value.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
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
  if (same) {
    return make_error(ErrorCode::kDeviceFailed, "{}; found {}, 'troika doctor' tries it again",
                      known->message, ago(seconds_since_1970() - known->time));
  }
  Result<CheckReport> report = check(device);
  // Memory may be there the next time.
  if (!report && report.error().code == ErrorCode::kOutOfMemory) return report;
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
