#include "troika/device/probe/info_json.h"

#include <algorithm>

#include "troika/device/check/report_json.h"

namespace troika::device {
namespace {

using Json = nlohmann::ordered_json;

// Far above any device.
constexpr size_t kMaxFacts = 256;
constexpr size_t kMaxNumbers = 4096;
constexpr size_t kMaxTextBytes = 4096;
constexpr int64_t kMaxRows = int64_t{1} << 24;
constexpr int64_t kMaxTile = 65536;
constexpr int64_t kMaxCores = 65536;

constexpr DeviceKind kKinds[] = {DeviceKind::kCpu, DeviceKind::kGpu, DeviceKind::kNpu};

template <class T>
bool read_numbers(const Json& value, const char* key, int64_t least, int64_t most,
                  std::vector<T>& to) {
  const auto found = value.find(key);
  if (found == value.end() || !found->is_array() || found->size() > kMaxNumbers) return false;
  for (const Json& entry : *found) {
    if (!entry.is_number_integer()) return false;
    const auto number = entry.get<int64_t>();
    if (number < least || number > most) return false;
    to.push_back(static_cast<T>(number));
  }
  return true;
}

bool read_facts(const Json& value, DeviceInfo& info) {
  const auto found = value.find("facts");
  if (found == value.end() || !found->is_object() || found->size() > kMaxFacts) return false;
  for (const auto& [key, text] : found->items()) {
    if (!text.is_string()) return false;
    info.facts.emplace_back(key, text.get<std::string>());
  }
  return true;
}

}  // namespace

Json to_json(const DeviceInfo& info) {
  Json facts = Json::object();
  for (const auto& [key, value] : info.facts) facts[key] = value;
  return {{"name", info.name},
          {"kind", std::string(to_string(info.kind))},
          {"description", info.description},
          {"version", info.version},
          {"cores", info.cores},
          {"threads", info.threads},
          {"standard_rows", info.standard_rows},
          {"n_tile", info.n_tile},
          {"k_tile", info.k_tile},
          {"exact", info.exact},
          {"int8_inputs", info.int8_inputs},
          {"strided", info.strided},
          {"unified_memory", info.unified_memory},
          {"paged_attention", info.paged_attention},
          {"capacity_bytes", info.capacity_bytes},
          {"facts", facts}};
}

std::optional<DeviceInfo> info_from_json(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  DeviceInfo info;
  const std::string kind = text_of(value, "kind");
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](DeviceKind k) { return to_string(k) == kind; });
  if (found == std::end(kKinds)) return std::nullopt;
  info.kind = *found;
  info.name = text_of(value, "name");
  info.description = text_of(value, "description");
  info.version = text_of(value, "version");
  if (info.name.empty() ||
      std::max({info.name.size(), info.description.size(), info.version.size()}) > kMaxTextBytes) {
    return std::nullopt;
  }
  info.threads = static_cast<int>(std::clamp<int64_t>(integer_of(value, "threads"), 0, kMaxCores));
  info.n_tile = integer_of(value, "n_tile");
  info.k_tile = integer_of(value, "k_tile");
  info.capacity_bytes = std::max<int64_t>(integer_of(value, "capacity_bytes"), 0);
  info.exact = flag_of(value, "exact");
  info.int8_inputs = flag_of(value, "int8_inputs");
  info.strided = flag_of(value, "strided");
  info.unified_memory = flag_of(value, "unified_memory");
  info.paged_attention = flag_of(value, "paged_attention");
  const bool sound = info.n_tile >= 1 && info.n_tile <= kMaxTile && info.k_tile >= 1 &&
                     info.k_tile <= kMaxTile &&
                     read_numbers(value, "cores", 0, kMaxCores, info.cores) &&
                     read_numbers(value, "standard_rows", 1, kMaxRows, info.standard_rows) &&
                     std::is_sorted(info.standard_rows.begin(), info.standard_rows.end()) &&
                     read_facts(value, info);
  return sound ? std::optional(info) : std::nullopt;
}

}  // namespace troika::device
