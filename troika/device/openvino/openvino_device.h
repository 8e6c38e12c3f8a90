// The `openvino` device: an NPU with static shapes through OpenVINO, or its CPU plug-in in place of
// one. OpenVINO is needed neither to build nor to start a program: the device is a module of its
// own, libtroika_openvino.so beside the program, loaded when the device is first opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"

namespace troika::device::openvino {

// Where OpenVINO computes. kAny: an NPU where it lists one, else its CPU plug-in.
enum class Plugin { kAny, kCpu, kNpu };

struct OpenVinoOptions {
  std::string name = "openvino";
  Plugin plugin = Plugin::kAny;
  std::vector<int> cores;  // that it is bound to; empty: `threads` threads, not pinned
  int threads = 1;
  // Weights of FP32 and FP16 stay where they are and are inputs of the graphs; the others are
  // constants, of which the graphs hold a copy.
  bool weights_as_inputs = false;
  bool int8_activations = false;  // inputs of products are rounded to 8 bits in groups of 32
  std::string cache_dir;          // compiled graphs are kept there; empty: nowhere
  std::string module_path;        // empty: libtroika_openvino.so in the program's own folder
};

// kNotFound naming the file if the module or OpenVINO itself is not there, or if OpenVINO lists no
// NPU and one was asked for; kUnsupported if the module is of another build.
Result<std::unique_ptr<Device>> open(const OpenVinoOptions& options,
                                     const Clock& clock = system_clock());

}  // namespace troika::device::openvino
