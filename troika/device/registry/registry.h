// The registry: every kind of device that this build knows, one line each in registry.cpp.
#pragma once

#include <memory>
#include <span>
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

// A kind of device: how it is called and opened.
struct DeviceType {
  std::string_view name;
  std::string_view summary;  // one line for `troika devices`
  // `cores`: the cores that it may use, pinned to them if `spec.cores` names them.
  Result<std::unique_ptr<Device>> (*open)(const DeviceSpec& spec, const std::vector<int>& cores,
                                          const OpenOptions& options, const Clock& clock);
  bool wraps = false;  // is written before another device: `name:instance:device`
};

std::span<const DeviceType> device_types();
// kNotFound for a name that is not in the registry, with the names that are.
Result<const DeviceType*> find_device_type(std::string_view name);

// Opens one device; kNotFound as above. It is supervised (device/supervised.h), as are those that
// it wraps.
Result<std::unique_ptr<Device>> open_device(const DeviceSpec& spec, const std::vector<int>& cores,
                                            const OpenOptions& options,
                                            const Clock& clock = system_clock());

// Opens the devices of a device string, in its order: all of them or none.
Result<std::vector<std::unique_ptr<Device>>> open_devices(std::string_view device_string,
                                                          const OpenOptions& options,
                                                          const Clock& clock = system_clock());

}  // namespace troika::device
