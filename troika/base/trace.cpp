#include "troika/base/trace.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

namespace troika {

std::string to_chrome_json(const Trace& trace) {
  using nlohmann::json;
  TimePoint origin = TimePoint::max();
  for (const TraceEvent& event : trace.events) origin = std::min(origin, event.queued);

  json events = json::array();
  std::map<std::string, int> lanes;
  for (const TraceEvent& event : trace.events) {
    const auto [lane, is_new] = lanes.emplace(event.device, static_cast<int>(lanes.size()) + 1);
    if (is_new) {
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", 1},
                        {"tid", lane->second},
                        {"args", {{"name", event.device}}}});
    }
    events.push_back({{"name", event.name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", lane->second},
                      {"ts", to_us(event.start - origin)},
                      {"dur", to_us(event.end - event.start)},
                      {"args",
                       {{"pass", event.pass},
                        {"layer", event.layer},
                        {"rows", event.rows},
                        {"bytes", event.bytes},
                        {"macs", event.macs},
                        {"queued_us", to_us(event.queued - origin)}}}});
  }
  return json{{"displayTimeUnit", "ms"},
              {"otherData", {{"simulated", trace.simulated}}},
              {"traceEvents", std::move(events)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

Status write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << '\n';
  if (file.flush()) return {};
  return make_error(ErrorCode::kIo, "cannot write the trace to {}: {}", path,
                    std::generic_category().message(errno));
}

}  // namespace

Status write_chrome_json(const Trace& trace, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  // A pipe, a device or a link (/dev/stdout) is written to as it is; a file appears whole or not at
  // all.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return write_file(path, to_chrome_json(trace));
  }
  const std::string part = path + ".part";
  Status written = write_file(part, to_chrome_json(trace));
  if (written) {
    fs::rename(part, path, error);
    if (!error) return {};
    written = make_error(ErrorCode::kIo, "cannot write the trace to {}: {}", path, error.message());
  }
  fs::remove(part, error);
  return written;
}

}  // namespace troika
