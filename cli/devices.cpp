// troika devices: what this machine has to compute with.
#include "cli/json_output.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "troika/base/clock.h"
#include "troika/device/registry/registry.h"

namespace troika::cli {
namespace {

Json device_json(const device::DeviceInfo& info) {
  Json facts = Json::object();
  for (const auto& [key, value] : info.facts) facts[key] = value;
  return {{"name", info.name},
          {"kind", std::string(to_string(info.kind))},
          {"description", info.description},
          {"cores", info.cores},
          {"standard_rows", info.standard_rows},
          {"n_tile", info.n_tile},
          {"unified_memory", info.unified_memory},
          {"paged_attention", info.paged_attention},
          {"capacity_bytes", info.capacity_bytes},
          {"facts", facts}};
}

std::string device_text(const device::DeviceInfo& info) {
  const auto yes_no = [](bool value) { return value ? "yes" : "no"; };
  const std::string rows = info.standard_rows.empty()
                               ? "any number"
                               : fmt::format("{}", fmt::join(info.standard_rows, ", "));
  std::string text = fmt::format("{} ({}): {}\n", printable(info.name), to_string(info.kind),
                                 printable(info.description));
  const auto line = [&text](std::string_view key, std::string_view value) {
    text += fmt::format("  {:<16} {}\n", printable(key), printable(value));
  };
  line("cores",
       info.cores.empty() ? "not bound to any" : fmt::format("{}", fmt::join(info.cores, ", ")));
  line("rows", rows);
  line("unified memory", yes_no(info.unified_memory));
  line("paged attention", yes_no(info.paged_attention));
  for (const auto& [key, value] : info.facts) line(key, value);
  return text;
}

class Devices final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Devices");
    flags.text("--device", devices_, "LIST",
               "Open these, as 'troika run' would (default: every kind that this build knows)",
               "LLAMA_ARG_DEVICE");
    flags.integer("-t,--threads", threads_, kThreadRange,
                  "Cores of all devices together (default: every core)", "LLAMA_ARG_THREADS");
    flags.text("--kernels", kernels_, "NAME", "Kernels of the cpu (default: the fastest)");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print a list of JSON objects");
    flags.set_examples("  troika devices\n  troika devices --device cpu@0-1 --json\n");
  }

  Status run(Console& console) override {
    device::OpenOptions options;
    options.threads = static_cast<int>(std::max<int64_t>(threads_, 0));
    options.kernels = kernels_;
    Json list = Json::array();
    std::string text;
    if (!devices_.empty()) {
      ASSIGN_OR_RETURN(const auto opened, device::open_devices(devices_, options));
      for (const auto& device : opened) {
        list.push_back(device_json(device->info()));
        text += device_text(device->info());
      }
    } else {
      for (const device::DeviceType& type : device::device_types()) {
        if (type.wraps) continue;  // nothing by itself
        // A kind that is not here is shown with the reason, and hides no other.
        const auto opened = device::open_devices(type.name, options);
        if (!opened) {
          list.push_back({{"name", std::string(type.name)}, {"error", opened.error().message}});
          text += fmt::format("{}: not usable: {}\n", type.name, printable(opened.error().message));
          continue;
        }
        list.push_back(device_json(opened->front()->info()));
        text += device_text(opened->front()->info());
      }
    }
    return json_ ? print_json(console, list, 2) : console.print(text);
  }

 private:
  std::string devices_;
  std::string kernels_;
  int64_t threads_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_devices() { return std::make_unique<Devices>(); }

}  // namespace troika::cli
