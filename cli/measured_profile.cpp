#include "cli/measured_profile.h"

#include "cli/device_prober.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/version.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/record/machine.h"
#include "troika/profile/record/profile_store.h"

namespace troika::cli {
namespace {

Status measure(const graph::Graph& graph, std::span<const std::unique_ptr<device::Device>> devices,
               profile::ProfilerOptions options, const profile::ProfileStore& store,
               profile::Profile& profile, Console& console) {
  Progress progress(console, "profiling", true);
  const TimePoint begin = system_clock().now();
  options.cancelled = interrupted;
  options.progress = [&](double part) {
    progress.update(static_cast<uint64_t>(part * 1000), 1000);
  };
  bool told = false;
  options.save = [&](const profile::Profile& known) {
    const Status saved = store.save(known);
    if (!saved && !told) console.warn(saved.error().message);
    told = told || !saved;
  };
  const auto before = profile::read_meters("");
  RETURN_IF_ERROR(profile::measure_profile(graph, devices, options, profile));
  profile.machine.meters = profile::mean_power(before, profile::read_meters(""),
                                               to_seconds(system_clock().now() - begin));
  options.save(profile);
  return {};
}

}  // namespace

Result<std::vector<std::unique_ptr<device::Device>>> open_for_profile(const ProfileWish& wish,
                                                                      Console& console) {
  ProberOptions prober;
  prober.open = wish.open;
  prober.cache_folder = wish.cache_folder;
  ASSIGN_OR_RETURN(const auto tried, try_devices(wish.devices, prober));
  for (const TriedDevice& device : tried) {
    if (device.good()) continue;
    return make_error(ErrorCode::kDeviceFailed, "device {} cannot be profiled: {}",
                      in_quotes(device.name), device.report.error.message);
  }
  console.note("devices are good");
  return device::open_devices(wish.devices, prober.open);
}

Result<profile::Profile> stored_profile(const ProfileWish& wish, const graph::Graph& graph,
                                        std::span<const std::unique_ptr<device::Device>> devices) {
  return profile::ProfileStore(wish.cache_folder)
      .find(profile::empty_profile(graph, devices, wish.kv_type, build_stamp()));
}

Result<profile::Profile> measured_profile(const ProfileWish& wish, const graph::Graph& graph,
                                          std::span<const std::unique_ptr<device::Device>> devices,
                                          Console& console) {
  profile::ProfilerOptions options;
  options.kv_type = wish.kv_type;
  profile::Profile profile = profile::empty_profile(graph, devices, options.kv_type, build_stamp());
  const profile::ProfileStore store(wish.cache_folder);
  if (!wish.again) {
    auto kept = store.find(profile);
    if (kept && kept->complete) {
      console.hint("the stored profile holds: " + store.path(profile));
      return kept;
    }
    if (kept) console.hint("taking up an interrupted run");
    if (kept) profile = std::move(*kept);
    if (!kept && kept.error().code != ErrorCode::kNotFound) {
      console.warn(kept.error().message + "; measuring anew");
    }
  }
  RETURN_IF_ERROR(measure(graph, devices, std::move(options), store, profile, console));
  return profile;
}

Result<profile::Profile> read_profile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_text(path, profile::kMaxProfileBytes + 1));
  auto profile = profile::from_json(text);
  if (profile) return profile;
  return make_error(profile.error().code, "{}: {}", in_quotes(path), profile.error().message);
}

}  // namespace troika::cli
