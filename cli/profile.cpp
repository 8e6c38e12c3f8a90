// troika profile: measures devices on a model's shapes, keeps the result, and shows it.
#include "cli/cache_folder.h"
#include "cli/device_prober.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/profile_report.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "troika/base/cache_file.h"
#include "troika/base/write_file.h"
#include "troika/graph/graph.h"
#include "troika/profile/measure/profiler.h"
#include "troika/profile/record/machine.h"
#include "troika/profile/record/profile_store.h"

namespace troika::cli {
namespace {

class ProfileVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.positional("FILE", file_, "A profile to show instead of this machine's");
    model_.declare(flags);
    flags.begin_group("Measuring");
    flags.text("--device", devices_, "LIST", "Devices, joined by commas (default: cpu)");
    flags.integer("-t,--threads", threads_, kThreadRange,
                  "Cores of all devices together (default: every core)");
    flags.choice("--cache-type-k", kv_type_, {"f32", "f16"}, "KV cache (default: f32)");
    flags.choice("--activations", activations_, {"f32", "int8"},
                 "Inputs of products: f32, or int8 on devices that can (default: f32)");
    flags.toggle("--again", again_, "Measure even if a stored profile holds");
    flags.toggle("--no-cache", no_cache_, "Neither use nor keep a stored profile");
    flags.begin_group("Output");
    flags.toggle("--show", show_, "Print the profile's tables");
    flags.toggle("--json", json_, "Print the profile itself");
    flags.toggle("--schema", schema_, "Print the JSON schema of profiles, and measure nothing");
    flags.file("-o,--output", output_, "Write the profile to a file");
    flags.set_examples(
        "  troika profile --device cpu@0,openvino@1\n"
        "  troika profile --device cpu@0,openvino@1 --show\n"
        "  troika profile -o machine.json && troika profile machine.json --show\n\n"
        "An interrupted run is taken up where it was.\n");
  }

  Status run(Console& console) override {
    if (schema_) return console.print(profile::json_schema() + "\n");
    if (!file_.empty()) {
      ASSIGN_OR_RETURN(const std::string text, read_text(file_, profile::kMaxProfileBytes + 1));
      auto profile = profile::from_json(text);
      if (!profile) {
        return make_error(profile.error().code, "{}: {}", in_quotes(file_),
                          profile.error().message);
      }
      return print(*profile, console);
    }
    if (!output_.empty()) RETURN_IF_ERROR(check_writable("the profile", output_));
    ASSIGN_OR_RETURN(const profile::Profile profile, measured(console));
    if (!output_.empty()) {
      RETURN_IF_ERROR(write_file("the profile", output_, profile::to_json(profile) + "\n"));
    }
    return print(profile, console);
  }

 private:
  Status print(const profile::Profile& profile, Console& console) const {
    if (json_) return console.print(profile::to_json(profile) + "\n");
    if (show_ || !file_.empty()) return console.print(profile_text(profile));
    std::string text;
    for (const profile::DeviceProfile& device : profile.devices) {
      text += fmt::format("{}: {} products, largest error at {} held-out points {:.1f} %\n",
                          device.name, device.products.size(), device.checks.size(),
                          100 * device.stated_error());
    }
    return console.print(
        text + fmt::format("measured in {:.0f} s; --show prints all of it\n", profile.took_s));
  }

  Result<std::vector<std::unique_ptr<device::Device>>> open(Console& console) const {
    ProberOptions prober;
    prober.open.threads = static_cast<int>(std::max<int64_t>(threads_, 0));
    prober.open.int8_activations = activations_ == "int8";
    if (no_cache_) prober.cache_folder.clear();
    ASSIGN_OR_RETURN(const auto tried, try_devices(devices_, prober));
    for (const TriedDevice& device : tried) {
      if (device.good()) continue;
      return make_error(ErrorCode::kDeviceFailed, "device {} cannot be profiled: {}",
                        in_quotes(device.name), device.report.error.message);
    }
    console.note("devices are good");
    return device::open_devices(devices_, prober.open);
  }

  // A stored profile that holds, or a new one.
  Result<profile::Profile> measured(Console& console) const {
    ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(model_, true, threads_, console));
    ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(loaded.model));
    ASSIGN_OR_RETURN(const auto devices, open(console));
    profile::ProfilerOptions options;
    options.kv_type = kv_type_ == "f16" ? device::KvType::kF16 : device::KvType::kF32;
    profile::Profile profile;
    profile.build = build_stamp();
    profile.time = seconds_since_1970();
    profile.machine = profile::read_machine("");
    profile.model = profile::profiled_model(graph, options.kv_type);
    for (const auto& device : devices) {
      profile.devices.push_back(profile::profiled_device(device->info()));
    }
    const profile::ProfileStore store(no_cache_ ? "" : cache_folder());
    if (!again_) {
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

  static Status measure(const graph::Graph& graph,
                        std::span<const std::unique_ptr<device::Device>> devices,
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

  ModelFlags model_;
  std::string file_;
  std::string devices_ = "cpu";
  int64_t threads_ = 0;
  std::string kv_type_ = "f32";
  std::string activations_ = "f32";
  bool again_ = false;
  bool no_cache_ = false;
  bool show_ = false;
  bool json_ = false;
  bool schema_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_profile() { return std::make_unique<ProfileVerb>(); }

}  // namespace troika::cli
