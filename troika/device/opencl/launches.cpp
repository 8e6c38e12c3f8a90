#include "troika/device/opencl/launches.h"

#include <array>

namespace troika::device::opencl {
namespace {

constexpr size_t kLongestName = 64;

KernelHandle second_kernel(cl_kernel original) {
  cl_program program = nullptr;
  std::array<char, kLongestName> name{};
  if (api().GetKernelInfo(original, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr) !=
          CL_SUCCESS ||
      api().GetKernelInfo(original, CL_KERNEL_FUNCTION_NAME, name.size(), name.data(), nullptr) !=
          CL_SUCCESS) {
    return {};
  }
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(api().CreateKernel(program, name.data(), &code));
  return code == CL_SUCCESS ? std::move(kernel) : KernelHandle();
}

}  // namespace

void Launches::begin(uint64_t generation) {
  next_ = 0;
  if (generation == generation_) return;
  generation_ = generation;
  for (Launch& launch : launches_) launch.values.clear();
}

Launches::Launch* Launches::next(cl_kernel original) {
  if (next_ == launches_.size()) launches_.emplace_back();
  Launch& launch = launches_[next_++];
  if (launch.original != original) {
    launch = {original, second_kernel(original), {}};
  }
  return launch.kernel ? &launch : nullptr;
}

}  // namespace troika::device::opencl
