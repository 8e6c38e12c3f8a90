// What is around every device that is opened by name: compile() ends although a driver hangs in it,
// and closing a device that is stuck never waits for it.
#pragma once

#include <memory>

#include "troika/base/clock.h"
#include "troika/device/device.h"

namespace troika::device {

// A device with the facts, kernels and times of the one that is given.
//
// A compilation that takes longer than `patience`, time in which the process stood still not
// counted, gives kDeviceFailed. The device is lost and stuck then, for a thread may never come back
// from it: what the program refers to (graph, weights) is to be kept, as with a task that hangs.
// Destroyed while stuck, it puts the device that it was given in quarantine.
std::unique_ptr<Device> supervise(std::unique_ptr<Device> device, Duration patience);

}  // namespace troika::device
