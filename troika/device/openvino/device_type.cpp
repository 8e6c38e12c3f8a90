#include "troika/device/device_type.h"

#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {
namespace {

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  OpenVinoOptions options;
  const std::string_view instance = request.spec.instance;
  options.weights_as_inputs = instance.ends_with("inputs");
  if (instance == "CPU" || instance == "CPU-inputs") {
    options.plugin = Plugin::kCpu;
  } else if (instance == "NPU" || instance == "NPU-inputs") {
    options.plugin = Plugin::kNpu;
  } else if (!instance.empty() && instance != "inputs") {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write openvino, openvino:CPU or "
                      "openvino:NPU, or with weights as inputs openvino:inputs, "
                      "openvino:CPU-inputs or openvino:NPU-inputs",
                      request.spec.text, instance);
  }
  options.name = request.spec.text;
  options.threads = static_cast<int>(request.cores.size());
  if (!request.spec.cores.empty()) options.cores = request.cores;
  options.cache_dir = request.options.cache_dir;
  options.int8_activations = request.options.int8_activations;
  return open(options, request.clock);
}

}  // namespace

extern const DeviceType kDeviceType;
const DeviceType kDeviceType{
    "openvino", "an NPU through OpenVINO, or its CPU plug-in in place of one", open_requested};

}  // namespace troika::device::openvino
