#include "troika/device/device_type.h"

#include <algorithm>
#include <iterator>

#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {
namespace {

struct Instance {
  std::string_view name;
  Plugin plugin = Plugin::kAny;
  bool weights_as_inputs = false;
};
constexpr Instance kInstances[] = {
    {"", Plugin::kAny, false},          {"CPU", Plugin::kCpu, false},
    {"NPU", Plugin::kNpu, false},       {"inputs", Plugin::kAny, true},
    {"CPU-inputs", Plugin::kCpu, true}, {"NPU-inputs", Plugin::kNpu, true}};

Result<std::unique_ptr<Device>> open_requested(const OpenRequest& request) {
  const std::string_view wanted = request.spec.instance;
  const auto instance = std::find_if(std::begin(kInstances), std::end(kInstances),
                                     [&](const Instance& known) { return known.name == wanted; });
  if (instance == std::end(kInstances)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "device \"{}\" has no instance \"{}\": write openvino, openvino:CPU or "
                      "openvino:NPU, or with weights as inputs openvino:inputs, "
                      "openvino:CPU-inputs or openvino:NPU-inputs",
                      request.spec.text, wanted);
  }
  OpenVinoOptions options;
  options.plugin = instance->plugin;
  options.weights_as_inputs = instance->weights_as_inputs;
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
