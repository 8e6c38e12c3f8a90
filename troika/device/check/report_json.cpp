#include "troika/device/check/report_json.h"

#include <algorithm>

namespace troika::device {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMaxGroups = 64;
constexpr int64_t kMaxCases = 1'000'000;
constexpr int kMaxDepth = 8;

// The largest NMSE told: JSON has no infinity, and right values are far below.
constexpr double kMaxError = 1e300;

int count_of(const json& object, const char* key) {
  return static_cast<int>(std::clamp<int64_t>(integer_of(object, key), 0, kMaxCases));
}

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

std::optional<json> parse_json(std::string_view text) {
  bool too_deep = false;
  json value = json::parse(
      text,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > kMaxDepth;
        return !too_deep;
      },
      false);
  if (value.is_discarded() || too_deep) return std::nullopt;
  return value;
}

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t integer_of(const json& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

bool flag_of(const json& object, const char* key) {
  if (!object.is_object()) return false;
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

json to_json(const CheckReport& report) {
  json groups = json::array();
  for (const CheckedGroup& group : report.groups) {
    groups.push_back({{"group", group.group},
                      {"cases", group.cases},
                      {"nmse", std::min(group.nmse, kMaxError)},
                      {"bound", group.bound}});
  }
  return {{"groups", groups},
          {"cases", report.cases},
          {"untold", report.untold},
          {"took_us", static_cast<int64_t>(to_us(report.took))}};
}

std::optional<CheckReport> report_from_json(const json& value) {
  if (!value.is_object()) return std::nullopt;
  const auto groups = value.find("groups");
  if (groups == value.end() || !groups->is_array() || groups->size() > kMaxGroups) {
    return std::nullopt;
  }
  CheckReport report;
  for (const json& group : *groups) {
    if (!group.is_object() || text_of(group, "group").empty()) return std::nullopt;
    report.groups.push_back({text_of(group, "group"), count_of(group, "cases"),
                             number_of(group, "nmse"), number_of(group, "bound")});
  }
  report.cases = count_of(value, "cases");
  report.untold = count_of(value, "untold");
  report.took = std::chrono::microseconds(
      std::clamp<int64_t>(integer_of(value, "took_us"), 0, int64_t{1} << 40));
  return report;
}

}  // namespace troika::device
