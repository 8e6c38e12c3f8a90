#include "troika/device/registry/registry.h"

#include "troika/base/cores.h"
#include "troika/device/supervised.h"

namespace troika::device {
namespace {

Status check_wrapping(const DeviceSpec& spec, const DeviceType& type) {
  if (type.wraps() && spec.wrapped.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" needs another one to wrap: write {}:instance:device, e.g. {}",
                      spec.text, type.name, type.wrapping);
  }
  if (!type.wraps() && !spec.wrapped.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\": {} wraps no other device: write {}[:instance][@cores]",
                      spec.text, type.name, type.name);
  }
  return {};
}

}  // namespace

Result<const DeviceType*> find_device_type(std::string_view name) {
  std::string known;
  for (const DeviceType* const type : device_types()) {
    if (type->name == name) return type;
    known += (known.empty() ? "" : ", ") + std::string(type->name);
  }
  // Kinds are how people call them.
  const std::string_view meant = name == "gpu"   ? "; a GPU is opencl"
                                 : name == "npu" ? "; an NPU is openvino"
                                                 : "";
  return make_error(ErrorCode::kNotFound, "no device \"{}\": this build has {}{}", name, known,
                    meant);
}

Result<std::unique_ptr<Device>> open_device(const DeviceSpec& spec, const std::vector<int>& cores,
                                            const OpenOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(const DeviceType* const type, find_device_type(spec.name));
  RETURN_IF_ERROR(check_wrapping(spec, *type));
  const auto open_wrapped = [&] {
    return open_device(spec.wrapped.front(), cores, options, clock);
  };
  ASSIGN_OR_RETURN(auto device, type->open({spec, cores, options, clock, open_wrapped}));
  return supervise(std::move(device), options.compile_patience);
}

Result<std::vector<std::unique_ptr<Device>>> open_devices(std::string_view device_string,
                                                          const OpenOptions& options,
                                                          const Clock& clock) {
  ASSIGN_OR_RETURN(const std::vector<DeviceSpec> specs, parse_device_string(device_string));
  ASSIGN_OR_RETURN(const std::vector<std::vector<int>> cores,
                   assign_cores(specs, allowed_cores(), options.threads));
  std::vector<std::unique_ptr<Device>> devices;
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSIGN_OR_RETURN(auto device, open_device(specs[i], cores[i], options, clock));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace troika::device
