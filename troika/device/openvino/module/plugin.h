// OpenVINO as one device has it: a core, the plug-in chosen, and how graphs are compiled for it.
#pragma once

#include <functional>
#include <openvino/runtime/core.hpp>
#include <string>

#include "troika/device/openvino/module/stage_graph.h"
#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {

// Task lengths that a device is asked for; the last is the longest that there is.
inline constexpr int64_t kStandardRows[] = {1, 32, 64, 128, 256, 512, 1024};
inline constexpr int64_t kMaxStandardRows = 1024;

// Runs `body` on a thread bound to `cores` (to none if empty), and waits for it: threads that
// OpenVINO starts take over the affinity of the thread that makes it start them.
void run_on_cores(const std::vector<int>& cores, const std::function<void()>& body);

// An exception's text as one short line.
std::string one_line(const std::exception& exception);

// One for each core, or as many as wanted.
int thread_count(const OpenVinoOptions& options);

struct PluginState {
  ov::Core core;
  std::string plugin;   // "CPU" or "NPU"
  std::string version;  // OpenVINO's and the processor's: what compiled graphs depend on
  std::string chip;     // the plug-in's name of the device that it computes on
  ov::AnyMap compile_options;
  // The longest graph; longer tasks run it several times.
  int64_t most_rows = kMaxStandardRows;
  WeightForm weights = WeightForm::kBlocks;
  bool weight_inputs = false;            // where can_be_input()
  GraphUse row_use = GraphUse::kStages;  // of tasks of one row
};

// kNotFound if there is no NPU and one was asked for; kDeviceFailed with OpenVINO's own words.
Result<std::unique_ptr<PluginState>> open_plugin(const OpenVinoOptions& options);

}  // namespace troika::device::openvino
