// What earlier runs learnt about devices: which computed right values, with which driver, and which
// brought a program down. Kept in a folder of the user's cache, a file for each device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troika/device/check/check.h"
#include "troika/device/device_string.h"

namespace troika::device {

struct DeviceRecord {
  std::string version;  // DeviceInfo::version; empty if the device did not even open
  int64_t time = 0;     // when it was found out, in seconds since 1970
  bool good = false;
  std::string kind;     // of a bad device: a word for how it is bad
  std::string message;  // and what to do
  CheckReport report;   // of a good one
};

// What a device is remembered as: the device string without cores, and what it is opened with.
std::string device_key(const DeviceSpec& spec, bool int8_activations = false);

// Any thread, and any number of programs at once. A store that is missing, damaged, somebody
// else's or not writable only means that nothing is known.
class DeviceStore {
 public:
  // Remembers nothing.
  DeviceStore() = default;
  // `folder` is made when something is saved; empty: remembers nothing. `build` names this program:
  // what another build found out is not believed.
  DeviceStore(std::string folder, std::string build)
      : folder_(std::move(folder)), build_(std::move(build)) {}

  // A bad device is remembered for a day, a good one as long as the program is the same.
  std::optional<DeviceRecord> find(const std::string& key) const;
  // Replaces what was known; `time` is set to now. kIo if it cannot be written.
  Status save(const std::string& key, const DeviceRecord& record) const;
  void forget(const std::string& key) const;

  const std::string& folder() const { return folder_; }

 private:
  std::string path(const std::string& key) const;

  std::string folder_;
  std::string build_;
};

// check(), or what the store remembers of the same device with the same driver; the store then
// holds the outcome, unless memory was too short for one. `remembered`, if given, tells which it
// was.
Result<CheckReport> check_once(Device& device, const std::string& key, const DeviceStore& store,
                               bool* remembered = nullptr);

}  // namespace troika::device
