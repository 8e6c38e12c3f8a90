// Probing: a device is opened and checked in a child process first, since a vendor's driver may
// crash or hang, and would take this program with it.
//
// The parent calls probe(); the child, started by it, opens the device and writes probe_answer().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troika/device/check/device_store.h"

namespace troika::device {

enum class ProbeEnd {
  kGood,
  kRefused,   // did not open: not there, or not as named
  kWrong,     // opened, and computed wrong values or broke
  kHung,      // did not answer in time
  kCrashed,   // a signal ended the child
  kExited,    // the driver ended the child
  kNonsense,  // the child answered, but no answer of ours
};
std::string_view to_string(ProbeEnd end);  // "good", "refused", "wrong", ...

struct ProbeReport {
  ProbeEnd end = ProbeEnd::kNonsense;
  Error error;          // what is wrong, and what to do; unless good
  bool opened = false;  // then `info` holds
  DeviceInfo info;
  CheckReport check;        // if good
  bool remembered = false;  // from an earlier run: the check, or all of it if it was bad
  int64_t bad_since = 0;    // when that was, for all of it; seconds since 1970
};

struct ProbeRequest {
  // The program to start, with its arguments; the device string is added.
  std::vector<std::string> command;
  std::string device;
  std::string key;  // device_key() of it
  Duration time_limit = std::chrono::seconds(10);
  bool again = false;  // forget what is remembered
  std::function<bool()> cancelled;
};

// What became of the child, or of an earlier one if that left a bad device: it is not started again
// for a day. Any thread. kIo if no child can be started, kCancelled.
Result<ProbeReport> probe(const ProbeRequest& request, const DeviceStore& store);

// The child's part: checks the device that was opened, and says all of it in one line of JSON.
std::string probe_answer(const Result<std::unique_ptr<Device>>& device, const std::string& key,
                         const DeviceStore& store);

}  // namespace troika::device
