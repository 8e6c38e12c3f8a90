#include "troika/base/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

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
      .dump();
}

Status write_chrome_json(const Trace& trace, const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // A pipe or a device is written to as it is; a file appears whole or not at all.
  const bool replace = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  const std::string target = replace ? path + ".part" : path;
  {
    std::ofstream file(target, std::ios::binary | std::ios::trunc);
    file << to_chrome_json(trace) << '\n';
    if (!file.flush()) {
      return make_error(ErrorCode::kIo, "cannot write the trace to {}: {}", target,
                        std::strerror(errno));
    }
  }
  if (replace) {
    std::filesystem::rename(target, path, error);
    if (error) {
      return make_error(ErrorCode::kIo, "cannot write the trace to {}: {}", path, error.message());
    }
  }
  return {};
}

}  // namespace troika
