// Which operators the driver's compiler takes the kernels of: one that it refuses costs that
// operator, not the device.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "troika/device/opencl/kernel_set.h"

namespace troika::device::opencl {

// Any thread.
class Buildable {
 public:
  explicit Buildable(KernelSet& kernels) : kernels_(kernels) {}

  // Compiles what stands for the operator's kernels when first asked for its kind. `refused` is set
  // then if that fails: the operator and the compiler's words.
  bool builds(const graph::Op& op, std::string* refused);

 private:
  Status build(const graph::Op& op);
  Status build_product(model::TensorType type);

  KernelSet& kernels_;
  std::mutex mutex_;
  std::map<std::string, bool> known_;
};

}  // namespace troika::device::opencl
