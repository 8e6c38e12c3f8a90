// For tests: a driver that uses the freedom that OpenCL gives it. What is to be copied to the
// device is read when the copy is queued, and what is copied to the host arrives when somebody
// waits for it and no sooner, as it is on cards with memory of their own. PoCL does both in the
// queue's order.
#pragma once

#include <cstdint>

namespace troika::device::opencl {

// Stands between the program and the installed driver while it lives. One at a time; every device
// that is opened meanwhile must be closed before.
class EagerDriver {
 public:
  EagerDriver();
  ~EagerDriver();  // NOLINT(performance-trivially-destructible): without OpenCL it is
  EagerDriver(const EagerDriver&) = delete;
  EagerDriver& operator=(const EagerDriver&) = delete;

  // Copies to the host that arrived late.
  int64_t late_copies() const;
};

}  // namespace troika::device::opencl
