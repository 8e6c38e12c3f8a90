#include "troika/device/openvino/module/plugin.h"

#include <stdlib.h>  // setenv

#include <openvino/core/version.hpp>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <openvino/runtime/properties.hpp>
#include <thread>

#include "troika/base/cores.h"
#include "troika/base/cpu_name.h"
#include "troika/device/cpu/kernels/kernels.h"

namespace troika::device::openvino {
namespace {

// Inputs in one group share a scale where they are rounded to 8 bits; as many as weights do.
constexpr uint64_t kInt8Group = 32;
// Longer graphs are no faster on the CPU plug-in, and what lies between their operators would be
// held by each of them.
constexpr int64_t kCpuRows = 64;
constexpr size_t kMaxMessage = 400;

bool has_npu(ov::Core& core) {
  try {
    return !core.get_property("NPU", ov::available_devices).empty();
  } catch (const std::exception&) {
    return false;  // no such plug-in, or it finds no driver
  }
}

ov::AnyMap cpu_options(const OpenVinoOptions& options) {
  const int threads = thread_count(options);
  return {
      // Without a stream a graph runs on the thread that calls it and keeps no threads of its own.
      ov::num_streams(threads == 1 ? 0 : 1),
      ov::inference_num_threads(threads),
      // It would move the threads that call it.
      ov::hint::enable_cpu_pinning(false),
      ov::hint::inference_precision(ov::element::f32),
      ov::hint::dynamic_quantization_group_size(options.int8_activations ? kInt8Group : 0),
      ov::intel_cpu::denormals_optimization(true),
  };
}

Result<std::string> choose(ov::Core& core, const OpenVinoOptions& options) {
  if (options.plugin == Plugin::kCpu) return std::string("CPU");
  if (has_npu(core)) return std::string("NPU");
  if (options.plugin == Plugin::kAny) return std::string("CPU");
  return make_error(ErrorCode::kNotFound,
                    "device {}: OpenVINO finds no NPU on this machine (its driver may be missing); "
                    "openvino:CPU computes on its CPU plug-in",
                    options.name);
}

Result<std::unique_ptr<PluginState>> open_here(const OpenVinoOptions& options) {
  // OpenVINO's thread pool binds a thread to cores and back for each graph that the thread runs:
  // system calls that cost more than a small graph. hwloc makes none for another machine, and
  // threads stay where this device has put them.
  setenv("HWLOC_THISSYSTEM", "0", 0);
  auto state = std::make_unique<PluginState>();
  ASSIGN_OR_RETURN(state->plugin, choose(state->core, options));
  state->weight_inputs = options.weights_as_inputs;
  state->chip = state->core.get_property(state->plugin, ov::device::full_name);
  state->version = fmt::format("OpenVINO {}, {} on {}, {}", ov::get_openvino_version().buildNumber,
                               state->plugin, state->chip, cpu::available_kernels().front()->name);
  if (state->plugin == "CPU") {
    state->compile_options = cpu_options(options);
    state->most_rows = kCpuRows;
    state->row_use = GraphUse::kProducts;
  } else {
    state->weights = WeightForm::kHalf;
  }
  return state;
}

}  // namespace

int thread_count(const OpenVinoOptions& options) {
  return options.cores.empty() ? options.threads : static_cast<int>(options.cores.size());
}

void run_on_cores(const std::vector<int>& cores, const std::function<void()>& body) {
  std::thread([&] {
    if (!cores.empty()) static_cast<void>(pin_this_thread(cores));
    body();
  }).join();
}

std::string one_line(const std::exception& exception) {
  std::string line;
  for (const char c : std::string_view(exception.what())) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : c;
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() > kMaxMessage) line = line.substr(0, kMaxMessage) + "...";
  return line;
}

Result<std::unique_ptr<PluginState>> open_plugin(const OpenVinoOptions& options) {
  Result<std::unique_ptr<PluginState>> state;
  run_on_cores(options.cores, [&] {
    try {
      state = open_here(options);
    } catch (const std::exception& exception) {
      state = make_error(ErrorCode::kDeviceFailed, "device {}: OpenVINO does not start: {}",
                         options.name, one_line(exception));
    }
  });
  return state;
}

}  // namespace troika::device::openvino
