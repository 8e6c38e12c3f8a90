// troika profile: measures devices on a model's shapes, keeps the result, and shows it.
#include <algorithm>

#include "cli/cache_folder.h"
#include "cli/load.h"
#include "cli/measured_profile.h"
#include "cli/profile_report.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "troika/base/write_file.h"
#include "troika/graph/graph.h"

namespace troika::cli {
namespace {

// Above this a profile says little of how fast a device is.
constexpr double kNoisyError = 0.5;

double noisiest(const profile::Profile& profile) {
  double error = 0;
  for (const profile::DeviceProfile& device : profile.devices) {
    error = std::max(error, device.stated_error());
  }
  return error;
}

class ProfileVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.positional("FILE", file_, "A profile to show instead of this machine's");
    model_.declare(flags);
    flags.begin_group("Measuring");
    flags.name("--device", devices_, "LIST", "Devices, joined by commas (default: cpu)");
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
    flags.output("--html", html_, "Write a page with charts of it, that needs nothing else");
    flags.toggle("--schema", schema_, "Print the JSON schema of profiles, and measure nothing");
    flags.output("-o,--output", output_, "Write the profile to a file");
    flags.set_examples(
        "  troika profile --device cpu@0,openvino@1\n"
        "  troika profile --device cpu@0,openvino@1 --show --html profile.html\n"
        "  troika profile -o machine.json && troika profile machine.json --show\n\n"
        "An interrupted run is taken up where it was.\n");
  }

  Status run(Console& console) override {
    if (schema_) return console.print(profile::json_schema() + "\n");
    if (!html_.empty()) RETURN_IF_ERROR(check_writable("the page", html_));
    if (!file_.empty()) {
      ASSIGN_OR_RETURN(const profile::Profile profile, read_profile(file_));
      return print(profile, console);
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
    if (!html_.empty()) RETURN_IF_ERROR(write_file("the page", html_, profile_page(profile)));
    if (json_) return console.print(profile::to_json(profile) + "\n");
    if (show_ || (!file_.empty() && html_.empty())) return console.print(profile_text(profile));
    std::string text;
    for (const profile::DeviceProfile& device : profile.devices) {
      text += fmt::format("{}: {} products, largest error at {} held-out points {:.1f} %\n",
                          device.name, device.products.size(), device.checks.size(),
                          100 * device.stated_error());
    }
    if (noisiest(profile) > kNoisyError) {
      console.warn(
          "these measurements contradict each other: was the machine busy? 'troika profile "
          "--again' "
          "measures anew; plans made from them need --tune");
    }
    return console.print(
        text + fmt::format("measured in {:.0f} s; --show prints all of it\n", profile.took_s));
  }

  Result<profile::Profile> measured(Console& console) const {
    ASSIGN_OR_RETURN(const LoadedModel loaded, load_model(model_, true, threads_, console));
    ASSIGN_OR_RETURN(const graph::Graph graph, graph::build(loaded.model));
    ProfileWish wish;
    wish.devices = devices_;
    wish.open.threads = static_cast<int>(std::max<int64_t>(threads_, 0));
    wish.open.int8_activations = activations_ == "int8";
    ASSIGN_OR_RETURN(wish.kv_type, parse_kv_type("--cache-type-k", kv_type_));
    wish.cache_folder = no_cache_ ? "" : cache_folder();
    wish.again = again_;
    ASSIGN_OR_RETURN(const auto devices, open_for_profile(wish, console));
    return measured_profile(wish, graph, devices, console);
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
  std::string html_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_profile() { return std::make_unique<ProfileVerb>(); }

}  // namespace troika::cli
