#include "cli/device_prober.h"

#include "cli/cache_folder.h"
#include "cli/device_report.h"
#include "cli/interrupt.h"
#include "cli/version.h"
#include "troika/base/cores.h"
#include "troika/device/check/check.h"

namespace troika::cli {
namespace {

using device::DeviceSpec;
using device::ProbeEnd;
using device::ProbeReport;

// What every other device is checked against: opening it runs no code but ours.
constexpr std::string_view kReference = "cpu";

ProbeReport try_here(const DeviceSpec& spec, const std::vector<int>& cores,
                     const ProberOptions& options) {
  ProbeReport report;
  auto device = device::open_device(spec, cores, options.open);
  report.opened = device.has_value();
  report.end = ProbeEnd::kRefused;
  if (!device) {
    report.error = device.error();
    return report;
  }
  report.info = (*device)->info();
  report.end = ProbeEnd::kGood;
  if (!options.check_reference) return report;
  auto checked = device::check(**device);
  if (checked) {
    report.check = std::move(*checked);
  } else {
    report.end = ProbeEnd::kWrong;
    report.error = checked.error();
  }
  return report;
}

Result<ProbeReport> try_in_child(const DeviceSpec& spec, const std::vector<int>& cores,
                                 const ProberOptions& options) {
  const device::DeviceStore store = device_store(options.cache_folder);
  device::ProbeRequest request;
  request.command = {"/proc/self/exe", "probe-device", "--threads", std::to_string(cores.size())};
  if (!store.folder().empty()) {
    request.command.insert(request.command.end(), {"--cache", store.folder()});
  }
  if (!options.open.kernels.empty()) {
    request.command.insert(request.command.end(), {"--kernels", options.open.kernels});
  }
  if (options.open.int8_activations) request.command.emplace_back("--int8-activations");
  request.command.emplace_back("--device");
  request.device = spec.text;
  request.key = device_key(spec, options.open.int8_activations);
  request.again = options.again;
  request.time_limit = options.time_limit;
  request.cancelled = interrupted;
  auto report = device::probe(request, store);
  if (report || report.error().code != ErrorCode::kCancelled) return report;
  return make_error(ErrorCode::kCancelled, "interrupted while device {} was tried", spec.text);
}

}  // namespace

bool TriedDevice::missing() const {
  const ErrorCode code = report.error.code;
  return report.end == ProbeEnd::kRefused &&
         (code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported ||
          code == ErrorCode::kInvalidArgument);
}

device::DeviceStore device_store(std::string folder) { return {std::move(folder), build_stamp()}; }

Result<std::vector<TriedDevice>> try_devices(std::string_view device_string,
                                             const ProberOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<DeviceSpec> specs, device::parse_device_string(device_string));
  ASSIGN_OR_RETURN(const std::vector<std::vector<int>> cores,
                   device::assign_cores(specs, allowed_cores(), options.open.threads));
  std::vector<TriedDevice> tried;
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSIGN_OR_RETURN(const device::DeviceType* const type, device::find_device_type(specs[i].name));
    TriedDevice device;
    device.name = specs[i].text;
    if (type->name == kReference) {
      device.report = try_here(specs[i], cores[i], options);
    } else {
      ASSIGN_OR_RETURN(device.report, try_in_child(specs[i], cores[i], options));
    }
    tried.push_back(std::move(device));
  }
  return tried;
}

Status probe_device(const std::string& device, const ProberOptions& options) {
  ASSIGN_OR_RETURN(const auto tried, try_devices(device, options));
  if (tried.front().good()) return {};
  return make_error(tried.front().report.error.code, "{}", reason_of(tried.front()));
}

}  // namespace troika::cli
