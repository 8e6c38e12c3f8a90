#include "cli/device_report.h"

#include "cli/text.h"
#include "troika/base/cache_file.h"
#include "troika/device/probe/info_json.h"

namespace troika::cli {
std::string_view status_of(const TriedDevice& device) {
  if (device.good()) return "ok";
  return device.missing() ? "missing" : "bad";
}

std::string reason_of(const TriedDevice& device) {
  if (device.good()) return {};
  std::string reason = device.report.error.message;
  if (device.report.bad_since > 0) {
    reason += fmt::format("; found {}, 'troika doctor' tries it again",
                          ago(seconds_since_1970() - device.report.bad_since));
  }
  return reason;
}

Json device_json(const TriedDevice& device) {
  Json json = {{"name", device.name}};
  if (device.report.opened) json = device::to_json(device.report.info);
  if (!device.good()) {
    json["status"] = status_of(device);
    json["error"] = reason_of(device);
  }
  return json;
}

std::string device_text(const TriedDevice& device) {
  if (!device.good()) {
    return fmt::format("{}: not usable: {}\n", printable(device.name),
                       printable(reason_of(device)));
  }
  const device::DeviceInfo& info = device.report.info;
  const auto yes_no = [](bool value) { return value ? "yes" : "no"; };
  std::string text = fmt::format("{} ({}): {}\n", printable(info.name), to_string(info.kind),
                                 printable(info.description));
  const auto line = [&text](std::string_view key, std::string_view value) {
    text += fmt::format("  {:<16} {}\n", printable(key), printable(value));
  };
  line("cores",
       info.cores.empty() ? "not bound to any" : fmt::format("{}", fmt::join(info.cores, ", ")));
  line("rows", info.standard_rows.empty() ? "any number"
                                          : fmt::format("{}", fmt::join(info.standard_rows, ", ")));
  line("numbers", info.exact         ? "FP32"
                  : info.int8_inputs ? "inputs of products rounded to 8 bits"
                                     : "inputs rounded to FP16");
  line("unified memory", yes_no(info.unified_memory));
  line("paged attention", yes_no(info.paged_attention));
  line("version", info.version);
  for (const auto& [key, value] : info.facts) line(key, value);
  return text;
}

}  // namespace troika::cli
