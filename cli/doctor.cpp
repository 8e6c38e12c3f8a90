// troika doctor: whether each kind of device works here, and what to do about those that do not.
#include <unistd.h>

#include <algorithm>

#include "cli/cache_folder.h"
#include "cli/device_report.h"
#include "cli/drill.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "troika/base/cores.h"
#include "troika/device/check/report_json.h"
#include "troika/model/available_memory.h"

namespace troika::cli {
namespace {

struct Cache {
  std::string folder;  // empty: none
  std::string problem;
};

Cache examine_cache() {
  Cache cache;
  cache.folder = cache_folder();
  if (cache.folder.empty()) {
    cache.problem = "none: set TROIKA_CACHE, or HOME, to a folder";
  } else if (const Status writable = check_folder_writable(cache.folder); !writable) {
    cache.problem = writable.error().message;
  }
  return cache;
}

int64_t total_memory_bytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

std::string gib(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string core_text() {
  return fmt::format("{} of {} online may be used: {}; clock governor {}, power profile {}",
                     allowed_cores().size(), sysconf(_SC_NPROCESSORS_ONLN),
                     fmt::join(allowed_cores(), ", "), clock_governor(), power_profile());
}

std::string check_text(const device::ProbeReport& report) {
  double worst = 0;
  for (const device::CheckedGroup& group : report.check.groups) {
    if (group.bound > 0) worst = std::max(worst, group.nmse / group.bound);
  }
  return fmt::format(
      "{} cases right{}, the worst at {:.2g} % of what is allowed{}", report.check.cases,
      report.check.untold > 0 ? fmt::format(" ({} left out)", report.check.untold) : "",
      100 * worst, report.remembered ? ", as remembered" : "");
}

std::string device_line(const TriedDevice& device) {
  const device::ProbeReport& report = device.report;
  const std::string what = device.good()
                               ? fmt::format("{}; {}; {}", printable(report.info.description),
                                             printable(report.info.version), check_text(report))
                               : printable(reason_of(device));
  return fmt::format("{:<12} {:<8} {}\n", printable(device.name), status_of(device), what);
}

void end_line(std::string& text) {
  while (text.ends_with(' ')) text.pop_back();
  text += "\n";
}

// A row for each operator, a column for each device that was checked.
std::string error_table(const std::vector<TriedDevice>& devices) {
  std::vector<const TriedDevice*> good;
  std::vector<std::string> operators;
  for (const TriedDevice& device : devices) {
    if (!device.good()) continue;
    good.push_back(&device);
    for (const device::CheckedGroup& group : device.report.check.groups) {
      if (std::find(operators.begin(), operators.end(), group.group) == operators.end()) {
        operators.push_back(group.group);
      }
    }
  }
  std::string text =
      "\nSquared error of the worst case, as a part of the squares (and what is allowed)\n";
  text += fmt::format("{:<12}", "operator");
  for (const TriedDevice* device : good) text += fmt::format(" {:<18}", printable(device->name));
  end_line(text);
  for (const std::string& name : operators) {
    text += fmt::format("{:<12}", printable(name));
    for (const TriedDevice* device : good) {
      const auto& groups = device->report.check.groups;
      const auto found = std::find_if(groups.begin(), groups.end(),
                                      [&](const auto& group) { return group.group == name; });
      text += fmt::format(" {:<18}",
                          found == groups.end()
                              ? (device->report.check.untold > 0 ? "no time" : "not computed")
                              : fmt::format("{:.1e} ({:.0e})", found->nmse, found->bound));
    }
    end_line(text);
  }
  return text;
}

std::string report_text(const std::vector<TriedDevice>& devices, const Cache& cache) {
  std::string text;
  for (const TriedDevice& device : devices) text += device_line(device);
  const auto line = [&text](std::string_view what, std::string_view status, std::string_view rest) {
    text += fmt::format("{:<12} {:<8} {}\n", what, status, printable(rest));
  };
  const auto available = static_cast<int64_t>(model::available_memory_bytes().value_or(0));
  line("cores", "ok", core_text());
  line("memory", "ok",
       fmt::format("{} of {} available", gib(available), gib(total_memory_bytes())));
  line("cache", cache.problem.empty() ? "ok" : "missing",
       cache.problem.empty() ? cache.folder + ", writable" : cache.problem);
  line("program", "ok",
       fmt::format("troika {}, commit {}, {}", version(), build_commit(), compiler()));
  return text + error_table(devices);
}

Json report_json(const std::vector<TriedDevice>& devices, const Cache& cache) {
  Json list = Json::array();
  for (const TriedDevice& device : devices) {
    Json entry = {{"name", device.name},
                  {"status", status_of(device)},
                  {"end", std::string(to_string(device.report.end))}};
    if (!device.good()) entry["reason"] = reason_of(device);
    if (device.report.opened) entry["device"] = device_json(device);
    if (device.good()) entry["check"] = device::to_json(device.report.check);
    list.push_back(std::move(entry));
  }
  return {
      {"devices", list},
      {"cores",
       {{"allowed", allowed_cores()},
        {"online", sysconf(_SC_NPROCESSORS_ONLN)},
        {"governor", clock_governor()},
        {"power_profile", power_profile()}}},
      {"memory",
       {{"total_bytes", total_memory_bytes()},
        {"available_bytes", model::available_memory_bytes().value_or(0)}}},
      {"cache",
       {{"folder", cache.folder}, {"writable", cache.problem.empty()}, {"reason", cache.problem}}},
      {"version", version()},
      {"commit", build_commit()},
      {"compiler", compiler()}};
}

class Doctor final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.begin_group("Devices");
    flags.name("--device", devices_, "LIST",
               "Examine these, and fail if one is missing (default: every kind that this build "
               "knows, and fail only if one is broken)",
               "LLAMA_ARG_DEVICE");
    flags.integer("-t,--threads", threads_, kThreadRange,
                  "Cores of all devices together (default: every core)", "LLAMA_ARG_THREADS");
    flags.toggle(
        "--drill", drill_,
        "Break a device of its own choice on purpose in every way, at load, in a prompt and in an "
        "answer, and see whether the answer goes on");
    flags.begin_group("Output");
    flags.toggle("--json", json_, "Print one JSON object");
    flags.set_examples(
        "  troika doctor\n  troika doctor --device openvino --json\n  troika doctor --drill\n");
  }

  Status run(Console& console) override {
    if (drill_ && (!devices_.empty() || threads_ > 0)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--drill breaks devices of its own choice: leave out {}",
                        devices_.empty() ? "--threads" : "--device");
    }
    if (drill_) return drill(console, json_);
    ProberOptions options;
    options.open.threads = static_cast<int>(std::max<int64_t>(threads_, 0));
    options.again = true;
    options.check_reference = true;
    std::vector<TriedDevice> devices;
    if (!devices_.empty()) {
      ASSIGN_OR_RETURN(devices, try_devices(devices_, options));
    } else {
      for (const device::DeviceType* const type : device::device_types()) {
        if (type->wraps()) continue;  // nothing by itself
        ASSIGN_OR_RETURN(auto tried, try_devices(type->name, options));
        devices.push_back(std::move(tried.front()));
      }
    }
    const Cache cache = examine_cache();
    RETURN_IF_ERROR(json_ ? print_json(console, report_json(devices, cache), 2)
                          : console.print(report_text(devices, cache)));
    return verdict(devices);
  }

 private:
  // The first that is broken, or missing though it was named.
  Status verdict(const std::vector<TriedDevice>& devices) const {
    std::vector<std::string> names;
    const TriedDevice* first = nullptr;
    for (const TriedDevice& device : devices) {
      if (device.good() || (device.missing() && devices_.empty())) continue;
      if (first == nullptr) first = &device;
      names.push_back(printable(device.name));
    }
    if (first == nullptr) return {};
    return make_error(first->report.error.code, "{} of {} devices cannot be used: {}", names.size(),
                      devices.size(), fmt::join(names, ", "));
  }

  std::string devices_;
  int64_t threads_ = 0;
  bool json_ = false;
  bool drill_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace troika::cli
