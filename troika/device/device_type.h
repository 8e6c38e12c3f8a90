// A kind of device as the registry knows it. Each device's folder defines one, `kDeviceType` in its
// own namespace.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/device_string.h"

namespace troika::device {

struct OpenOptions {
  int threads = 0;                // cap on the cores of all devices together; 0: every core allowed
  std::string kernels;            // cpu kernel table by name; empty: the fastest
  std::string cache_dir;          // where devices keep what they compile; empty: nowhere
  std::string program_cache_dir;  // the same for small programs, whatever the model; empty: nowhere
  // Inputs of products are rounded to 8 bits, on devices that can.
  bool int8_activations = false;
  // Times of tasks are the devices' own, where they have a clock: for a trace. May cost some time.
  bool device_times = false;
  // For tests: devices that could compute in shared memory do so in memory of their own, where they
  // have a way to do that.
  bool own_memory = false;
  // A compilation that takes longer is that of a device that hangs. A driver may take minutes for
  // a large graph.
  Duration compile_patience = std::chrono::minutes(3);
};

// What a device is opened with; all of it outlives the call only.
struct OpenRequest {
  const DeviceSpec& spec;
  // Those that it may use; it is pinned to them if `spec.cores` names them.
  const std::vector<int>& cores;
  const OpenOptions& options;
  const Clock& clock;  // outlives the device
  // Of a kind that wraps: opens the device behind it, supervised.
  std::function<Result<std::unique_ptr<Device>>()> open_wrapped;
};

struct DeviceType {
  std::string_view name;     // its folder's: `cpu`
  std::string_view summary;  // one line for `troika devices`
  // kInvalidArgument for a specification that means nothing: the user's mistake, which ends the
  // program. Any other error puts the device aside.
  Result<std::unique_ptr<Device>> (*open)(const OpenRequest& request);
  // Of a kind that wraps another one, and is written before it: such a device string, for errors.
  std::string_view wrapping = {};

  bool wraps() const { return !wrapping.empty(); }
};

}  // namespace troika::device
