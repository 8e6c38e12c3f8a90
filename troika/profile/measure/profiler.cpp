#include "troika/profile/measure/profiler.h"

#include <algorithm>

#include "troika/base/cache_file.h"
#include "troika/profile/measure/device_profiler.h"
#include "troika/profile/measure/pair_profiler.h"
#include "troika/profile/record/machine.h"

namespace troika::profile {
namespace {

constexpr Duration kSaveStep = std::chrono::seconds(3);
// Of all time, what pairs take.
constexpr double kPairsPart = 0.05;

// Printable ASCII, as a profile holds it.
std::string plain(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.substr(0, 400);
}

// Tells how far all is, and saves now and then.
class Steps {
 public:
  Steps(const ProfilerOptions& options, const Profile& profile, size_t n_devices,
        const Clock& clock)
      : options_(options),
        profile_(profile),
        n_devices_(static_cast<double>(n_devices)),
        clock_(clock),
        saved_(clock.now()) {}

  void at(size_t device, double part) {
    if (options_.progress) {
      options_.progress((static_cast<double>(device) + part) / n_devices_ * (1 - kPairsPart));
    }
    if (!options_.save || clock_.now() - saved_ < kSaveStep) return;
    options_.save(profile_);
    saved_ = clock_.now();
  }

 private:
  const ProfilerOptions& options_;
  const Profile& profile_;
  double n_devices_;
  const Clock& clock_;
  TimePoint saved_;
};

Status measure_pairs(const ModelWork& work,
                     std::span<const std::unique_ptr<device::Device>> devices,
                     const ProfilerOptions& options, Profile& profile, const Clock& clock) {
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = i + 1; j < devices.size(); ++j) {
      const std::string& first = devices[i]->info().name;
      const std::string& second = devices[j]->info().name;
      const bool known =
          std::any_of(profile.pairs.begin(), profile.pairs.end(),
                      [&](const auto& p) { return p.first == first && p.second == second; });
      if (known) continue;
      const Stopwatch a(*devices[i], clock, options.repeats, options.cancelled);
      const Stopwatch b(*devices[j], clock, options.repeats, options.cancelled);
      ASSIGN_OR_RETURN(PairProfile pair, measure_pair(work, a, b));
      profile.pairs.push_back(std::move(pair));
    }
  }
  return {};
}

}  // namespace

ProfiledModel profiled_model(const graph::Graph& graph, device::KvType kv_type) {
  const ModelWork work = work_of(graph);
  ProfiledModel model;
  if (graph.model != nullptr) {
    model.name = plain(graph.model->path().substr(graph.model->path().rfind('/') + 1));
    model.type = plain(graph.model->type_name());
  }
  model.n_layers = std::max<int64_t>(graph.n_layers, 1);
  model.hidden = std::max<int64_t>(work.hidden, 1);
  model.n_heads = std::max<int64_t>(work.heads.n_heads, 1);
  model.n_kv_heads = std::max<int64_t>(graph.n_kv_heads, 1);
  model.head_dim = std::max<int64_t>(graph.head_dim, 1);
  model.ffn = std::max<int64_t>(work.ffn, 1);
  model.n_vocab = std::max<int64_t>(graph.n_vocab, 1);
  model.kv_type = device::to_string(kv_type);
  return model;
}

DeviceProfile profiled_device(const device::DeviceInfo& info) {
  DeviceProfile profile;
  profile.name = plain(info.name);
  profile.kind = device::to_string(info.kind);
  profile.description = plain(info.description);
  profile.version = plain(info.version);
  for (const auto& [name, value] : info.facts)
    profile.facts.emplace_back(plain(name), plain(value));
  profile.cores.assign(info.cores.begin(), info.cores.end());
  std::sort(profile.cores.begin(), profile.cores.end());
  profile.threads = info.threads;
  profile.standard_rows = info.standard_rows;
  profile.n_cut = info.n_tile;
  profile.k_cut = info.k_tile;
  profile.exact = info.exact;
  profile.unified_memory = info.unified_memory;
  profile.int8_inputs = info.int8_inputs;
  return profile;
}

Profile empty_profile(const graph::Graph& graph,
                      std::span<const std::unique_ptr<device::Device>> devices,
                      device::KvType kv_type, std::string build) {
  Profile profile;
  profile.build = std::move(build);
  profile.time = seconds_since_1970();
  profile.machine = read_machine("");
  profile.model = profiled_model(graph, kv_type);
  for (const auto& device : devices) profile.devices.push_back(profiled_device(device->info()));
  return profile;
}

Status measure_profile(const graph::Graph& graph,
                       std::span<const std::unique_ptr<device::Device>> devices,
                       const ProfilerOptions& options, Profile& profile, const Clock& clock) {
  const ModelWork work = work_of(graph);
  if (work.products.empty() || devices.empty() || devices.size() > kMaxProfiledDevices) {
    return make_error(ErrorCode::kInvalidArgument,
                      "nothing to profile: {} products on {} devices (at most {})",
                      work.products.size(), devices.size(), kMaxProfiledDevices);
  }
  const TimePoint begin = clock.now();
  const double took_before = profile.took_s;
  profile.complete = false;
  profile.model = profiled_model(graph, options.kv_type);
  if (profile.devices.empty()) {
    for (const auto& device : devices) profile.devices.push_back(profiled_device(device->info()));
  }
  Steps steps(options, profile, devices.size(), clock);
  const auto note_time = [&] { profile.took_s = took_before + to_seconds(clock.now() - begin); };
  for (size_t i = 0; i < devices.size(); ++i) {
    DeviceProfiler profiler(graph, work, *devices[i], options, clock, profile.devices[i],
                            [&](double part) {
                              note_time();
                              steps.at(i, part);
                            });
    const Status done = profiler.run();
    note_time();
    if (!done && options.save) options.save(profile);
    RETURN_IF_ERROR(done);
  }
  const Status paired = measure_pairs(work, devices, options, profile, clock);
  note_time();
  if (!paired && options.save) options.save(profile);
  RETURN_IF_ERROR(paired);
  profile.complete = true;
  if (options.progress) options.progress(1);
  return {};
}

}  // namespace troika::profile
