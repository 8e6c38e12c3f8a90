#include "troika/engine/rates_store.h"

#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "troika/base/cache_file.h"
#include "troika/device/check/report_json.h"
#include "troika/model/model.h"

namespace troika::engine {
namespace {

using json = nlohmann::ordered_json;

// Far above a real record.
constexpr size_t kMaxBytes = size_t{64} << 10;
constexpr size_t kMaxFiles = 100;
constexpr int kFormat = 1;
constexpr int64_t kKeptForSeconds = 7 * 24 * 3600;
constexpr int64_t kDisturbedKeptForSeconds = 600;
// Multiply-adds per second, beyond any device.
constexpr double kMostRate = 1e18;

constexpr std::pair<const char*, double plan::DeviceRates::*> kParts[] = {
    {"attention", &plan::DeviceRates::attention},
    {"mlp", &plan::DeviceRates::mlp},
    {"head", &plan::DeviceRates::head}};

std::optional<double> rate_of(const json& value, const char* key) {
  const auto found = value.find(key);
  if (found == value.end() || !found->is_number()) return std::nullopt;
  const auto rate = found->get<double>();
  return rate > 0 && rate <= kMostRate ? std::optional(rate) : std::nullopt;
}

std::optional<std::vector<plan::DeviceRates>> rates_of(const json& value, size_t n_devices) {
  if (!value.is_array() || value.size() != n_devices) return std::nullopt;
  std::vector<plan::DeviceRates> rates;
  for (const json& one : value) {
    if (!one.is_object()) return std::nullopt;
    const auto prefill = rate_of(one, "prefill");
    const auto decode = rate_of(one, "decode");
    if (!prefill || !decode) return std::nullopt;
    rates.push_back({*prefill, *decode});
    for (const auto& [key, part] : kParts) {
      if (one.contains(key)) {
        const auto rate = rate_of(one, key);
        if (!rate) return std::nullopt;
        rates.back().*part = *rate;
      }
    }
  }
  return rates;
}

}  // namespace

std::string rates_identity(const graph::Graph& graph,
                           std::span<const std::unique_ptr<device::Device>> devices,
                           std::string_view build) {
  std::string text = fmt::format("model {:016x}, build {}", graph.model->fingerprint(), build);
  for (const auto& device : devices) {
    const device::DeviceInfo& info = device->info();
    text += fmt::format("\n{}: {}, {} threads, cores {}", info.name, info.version, info.threads,
                        fmt::join(info.cores, " "));
    for (const auto& [key, value] : info.facts) text += fmt::format(", {} {}", key, value);
  }
  return text;
}

RatesStore::RatesStore(std::string folder)
    : folder_(folder.empty() ? std::string() : std::move(folder) + "/rates") {}

std::optional<KnownRates> RatesStore::find(const std::string& identity, size_t n_devices) const {
  if (folder_.empty()) return std::nullopt;
  const auto text =
      read_cache_file(fmt::format("{}/{}", folder_, cache_file_name(identity)), kMaxBytes);
  if (!text) return std::nullopt;
  const std::optional<json> value = device::parse_json(*text);
  if (!value || device::integer_of(*value, "format") != kFormat ||
      device::text_of(*value, "identity") != identity) {
    return std::nullopt;
  }
  KnownRates known;
  known.time = device::integer_of(*value, "time");
  const int64_t now = seconds_since_1970();
  const int64_t kept =
      device::flag_of(*value, "disturbed") ? kDisturbedKeptForSeconds : kKeptForSeconds;
  // A clock that was set back says nothing about how old they are.
  if (known.time > now || known.time < now - kept) return std::nullopt;
  auto rates = rates_of(value->value("rates", json()), n_devices);
  if (!rates) return std::nullopt;
  known.rates = std::move(*rates);
  return known;
}

Status RatesStore::save(const std::string& identity, std::span<const plan::DeviceRates> rates,
                        bool disturbed) const {
  if (folder_.empty()) return {};
  json list = json::array();
  for (const plan::DeviceRates& one : rates) {
    json entry = {{"prefill", one.prefill}, {"decode", one.decode}};
    for (const auto& [key, part] : kParts) {
      if (one.*part > 0) entry[key] = one.*part;
    }
    list.push_back(std::move(entry));
  }
  const json value = {{"format", kFormat},
                      {"identity", identity},
                      {"time", seconds_since_1970()},
                      {"disturbed", disturbed},
                      {"rates", std::move(list)}};
  RETURN_IF_ERROR(
      write_cache_file(folder_, cache_file_name(identity),
                       value.dump(2, ' ', true, json::error_handler_t::replace) + "\n"));
  keep_newest(folder_, kMaxFiles, kMaxFiles * kMaxBytes);
  return {};
}

}  // namespace troika::engine
