// The `faulty` device: another device, and one fault. For tests and drills.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "troika/base/clock.h"
#include "troika/base/result.h"
#include "troika/device/device.h"
#include "troika/device/faulty/fault.h"

namespace troika::device::faulty {

using OpenWrapped = std::function<Result<std::unique_ptr<Device>>()>;

// Has the facts of the device that `open_wrapped` gives, under its own name, and computes what that
// one computes, but for the fault. Results are checked as any device's are, so that NaN is caught.
//
// With kOpenHangs it never returns, with kCrashOnOpen the process ends here. A device that hangs
// blocks no thread but its own worker: abandon() returns after a second, then stuck() holds and the
// device is to be kept in quarantine.
Result<std::unique_ptr<Device>> open(const std::string& name, const Fault& fault,
                                     const OpenWrapped& open_wrapped,
                                     const Clock& clock = system_clock());

}  // namespace troika::device::faulty
