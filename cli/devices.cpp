// troika devices: what this machine has to compute with.
#include "cli/device_report.h"
#include "cli/json_output.h"
#include "cli/options.h"
#include "cli/verbs.h"

namespace troika::cli {
namespace {

class Devices final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Devices");
    flags.name("--device", devices_, "LIST",
               "Open these, as 'troika run' would (default: every kind that this build knows)",
               "LLAMA_ARG_DEVICE");
    flags.integer("-t,--threads", threads_, kThreadRange,
                  "Cores of all devices together (default: every core)", "LLAMA_ARG_THREADS");
    flags.name("--kernels", kernels_, "NAME", "Kernels of the cpu (default: the fastest)");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print a list of JSON objects");
    flags.set_examples("  troika devices\n  troika devices --device cpu@0-1 --json\n");
  }

  Status run(Console& console) override {
    ProberOptions options;
    options.open.threads = static_cast<int>(std::max<int64_t>(threads_, 0));
    options.open.kernels = kernels_;
    Json list = Json::array();
    std::string text;
    const auto show = [&](const TriedDevice& device) {
      list.push_back(device_json(device));
      text += device_text(device);
    };
    if (!devices_.empty()) {
      ASSIGN_OR_RETURN(const auto tried, try_devices(devices_, options));
      for (const TriedDevice& device : tried) {
        // What was asked for by name must be there.
        if (!device.good()) return tl::unexpected<Error>(device.report.error);
        show(device);
      }
    } else {
      for (const device::DeviceType* const type : device::device_types()) {
        if (type->wraps()) continue;  // nothing by itself
        // A kind that is not here is shown with the reason, and hides no other.
        ASSIGN_OR_RETURN(const auto tried, try_devices(type->name, options));
        show(tried.front());
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
