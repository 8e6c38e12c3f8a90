#include "troika/device/registry/registry.h"

#include "troika/base/cores.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/faulty/faulty_device.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/device/openvino/openvino_device.h"
#include "troika/device/paced/paced_device.h"
#include "troika/device/supervised.h"
#include "troika/device/systolic/systolic_device.h"

namespace troika::device {
namespace {

Result<std::unique_ptr<Device>> open_cpu(const DeviceSpec& spec, const std::vector<int>& cores,
                                         const OpenOptions& options, const Clock& clock) {
  if (!spec.instance.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write cpu or cpu@first-last",
                      spec.text, spec.instance);
  }
  cpu::CpuOptions cpu_options;
  cpu_options.name = spec.text;
  cpu_options.threads = static_cast<int>(cores.size());
  // Threads that nobody bound to cores are left to the system: two programs would else share a
  // core.
  if (!spec.cores.empty()) cpu_options.cores = cores;
  cpu_options.kernels = options.kernels;
  return cpu::open(cpu_options, clock);
}

Result<std::unique_ptr<Device>> open_systolic(const DeviceSpec& spec, const std::vector<int>&,
                                              const OpenOptions& options, const Clock& clock) {
  systolic::SystolicOptions systolic_options;
  systolic_options.name = spec.text;
  systolic_options.cores = spec.cores;
  systolic_options.kernels = options.kernels;
  if (spec.instance.empty()) return systolic::open(systolic_options, clock);
  paced::PacedOptions paced_options;
  paced_options.name = spec.text;
  ASSIGN_OR_RETURN(paced_options.pace, paced::pace_of_static_unit(spec.instance));
  ASSIGN_OR_RETURN(auto wrapped, systolic::open(systolic_options, clock));
  return paced::open(std::move(paced_options), std::move(wrapped), clock);
}

Result<std::unique_ptr<Device>> open_paced(const DeviceSpec& spec, const std::vector<int>& cores,
                                           const OpenOptions& options, const Clock& clock) {
  paced::PacedOptions paced_options;
  paced_options.name = spec.text;
  ASSIGN_OR_RETURN(paced_options.pace, paced::parse_pace(spec.instance));
  ASSIGN_OR_RETURN(auto wrapped, open_device(spec.wrapped.front(), cores, options, clock));
  return paced::open(std::move(paced_options), std::move(wrapped), clock);
}

Result<std::unique_ptr<Device>> open_openvino(const DeviceSpec& spec, const std::vector<int>& cores,
                                              const OpenOptions& options, const Clock& clock) {
  openvino::OpenVinoOptions openvino_options;
  if (spec.instance == "CPU") {
    openvino_options.plugin = openvino::Plugin::kCpu;
  } else if (spec.instance == "NPU") {
    openvino_options.plugin = openvino::Plugin::kNpu;
  } else if (!spec.instance.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write openvino, openvino:CPU or "
                      "openvino:NPU",
                      spec.text, spec.instance);
  }
  openvino_options.name = spec.text;
  openvino_options.threads = static_cast<int>(cores.size());
  if (!spec.cores.empty()) openvino_options.cores = cores;
  openvino_options.cache_dir = options.cache_dir;
  openvino_options.int8_activations = options.int8_activations;
  return openvino::open(openvino_options, clock);
}

Result<std::unique_ptr<Device>> open_opencl(const DeviceSpec& spec, const std::vector<int>& cores,
                                            const OpenOptions& options, const Clock& clock) {
  opencl::OpenClOptions opencl_options;
  opencl_options.name = spec.text;
  opencl_options.instance = spec.instance;
  if (!spec.cores.empty()) opencl_options.cores = cores;
  opencl_options.cache_dir = options.program_cache_dir;
  opencl_options.own_memory = options.own_memory;
  opencl_options.device_times = options.device_times;
  return opencl::open(opencl_options, clock);
}

Result<std::unique_ptr<Device>> open_faulty(const DeviceSpec& spec, const std::vector<int>& cores,
                                            const OpenOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(const faulty::Fault fault, faulty::parse_fault(spec.instance));
  const auto open_wrapped = [&] {
    return open_device(spec.wrapped.front(), cores, options, clock);
  };
  return faulty::open(spec.text, fault, open_wrapped, clock);
}

Status check_wrapping(const DeviceSpec& spec, const DeviceType& type) {
  if (type.wraps && spec.wrapped.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" needs another one to wrap: write {}:instance:device, e.g. "
                      "faulty:nan@7:cpu@1",
                      spec.text, type.name);
  }
  if (!type.wraps && !spec.wrapped.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\": {} wraps no other device: write {}[:instance][@cores]",
                      spec.text, type.name, type.name);
  }
  return {};
}

}  // namespace

std::span<const DeviceType> device_types() {
  static constexpr DeviceType kTypes[] = {
      {"cpu", "the processor's cores: SIMD kernels, the reference for all others", open_cpu},
      {"systolic", "an NPU in software: static lengths, 32x32 tiles, FP16 inputs", open_systolic},
      {"openvino", "an NPU through OpenVINO, or its CPU plug-in in place of one", open_openvino},
      {"opencl", "a GPU through OpenCL, or a processor's OpenCL runtime", open_opencl},
      {"paced", "another device with the timing of a described one", open_paced, true},
      {"faulty", "another device with a fault, for tests and drills", open_faulty, true},
  };
  return kTypes;
}

Result<const DeviceType*> find_device_type(std::string_view name) {
  std::string known;
  for (const DeviceType& type : device_types()) {
    if (type.name == name) return &type;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
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
  ASSIGN_OR_RETURN(auto device, type->open(spec, cores, options, clock));
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
