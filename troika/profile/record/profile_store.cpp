#include "troika/profile/record/profile_store.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "troika/base/cache_file.h"

namespace troika::profile {
namespace {

constexpr size_t kMaxFiles = 50;
constexpr int64_t kKeptForSeconds = 30 * 24 * 3600;

std::string version_of(const DeviceProfile& device) {
  std::string text = fmt::format("{}, {} threads, cores {}", device.version, device.threads,
                                 fmt::join(device.cores, " "));
  for (const auto& [name, value] : device.facts) text += fmt::format(", {} {}", name, value);
  return text;
}

}  // namespace

std::string key_of(const Profile& profile) {
  const ProfiledModel& m = profile.model;
  std::string key = fmt::format("{} {} layers {} {} {} {} {} {} {}", m.type, m.n_layers, m.hidden,
                                m.n_heads, m.n_kv_heads, m.head_dim, m.ffn, m.n_vocab, m.kv_type);
  for (const DeviceProfile& device : profile.devices) key += ", " + device.name;
  return key;
}

Profile without_points(const Profile& profile) {
  Profile bare;
  bare.build = profile.build;
  bare.time = profile.time;
  bare.complete = profile.complete;
  bare.took_s = profile.took_s;
  bare.machine = profile.machine;
  bare.model = profile.model;
  for (const DeviceProfile& device : profile.devices) {
    DeviceProfile& own = bare.devices.emplace_back(device);
    own.launch = {};
    own.products.clear();
    own.attention.clear();
    own.elementwise.clear();
    own.layers.clear();
    own.builds.clear();
    own.checks.clear();
  }
  return bare;
}

Status check_holds(const Profile& kept, const Profile& wanted, std::string_view what) {
  const auto stale = [&](const std::string& why) {
    return make_error(ErrorCode::kInvalidData, "{} is stale: {}", what, why);
  };
  if (key_of(kept) != key_of(wanted)) return stale("it is of another model or other devices");
  if (kept.build != wanted.build) return stale("another build of the program measured it");
  if (kept.machine.power_mode() != wanted.machine.power_mode()) {
    return stale(fmt::format("the power mode was \"{}\" and is \"{}\"", kept.machine.power_mode(),
                             wanted.machine.power_mode()));
  }
  for (size_t i = 0; i < kept.devices.size(); ++i) {
    if (version_of(kept.devices[i]) == version_of(wanted.devices[i])) continue;
    return stale(fmt::format("device {} was \"{}\" and is \"{}\"", kept.devices[i].name,
                             version_of(kept.devices[i]), version_of(wanted.devices[i])));
  }
  const int64_t now = seconds_since_1970();
  // A clock that was set back says nothing about how old it is.
  if (kept.time > now || kept.time < now - kKeptForSeconds) {
    return stale("it is older than 30 days, or from the future");
  }
  return {};
}

std::string identity_of(const Profile& profile) {
  std::string text = fmt::format("{}\nbuild {}\npower {}", key_of(profile), profile.build,
                                 profile.machine.power_mode());
  for (const DeviceProfile& device : profile.devices) {
    text += fmt::format("\n{}: {}", device.name, version_of(device));
  }
  return text;
}

std::string ProfileStore::path(const Profile& profile) const {
  return folder_.empty() ? "" : fmt::format("{}/{}", folder_, cache_file_name(key_of(profile)));
}

Result<Profile> ProfileStore::find(const Profile& wanted) const {
  const std::string file = path(wanted);
  if (file.empty()) return make_error(ErrorCode::kNotFound, "no profile is kept");
  const auto text = read_cache_file(file, kMaxProfileBytes);
  if (!text) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      return make_error(ErrorCode::kInvalidData, "the stored profile {} cannot be read", file);
    }
    return make_error(ErrorCode::kNotFound, "no profile is kept for this model on these devices");
  }
  auto kept = from_json(*text);
  if (!kept) {
    return make_error(ErrorCode::kInvalidData, "the stored profile is damaged: {}",
                      kept.error().message);
  }
  RETURN_IF_ERROR(check_holds(*kept, wanted, "the stored profile"));
  return kept;
}

Status ProfileStore::save(const Profile& profile) const {
  if (folder_.empty()) return {};
  RETURN_IF_ERROR(
      write_cache_file(folder_, cache_file_name(key_of(profile)), to_json(profile) + "\n"));
  keep_newest(folder_, kMaxFiles, kMaxFiles * kMaxProfileBytes);
  return {};
}

}  // namespace troika::profile
