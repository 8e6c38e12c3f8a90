// In place of the device where the program was built without OpenCL's headers.
#include "troika/device/opencl/opencl_device.h"

namespace troika::device::opencl {
namespace {

tl::unexpected<Error> left_out() {
  return make_error(ErrorCode::kNotFound,
                    "this program was built without OpenCL: run scripts/bootstrap, which installs "
                    "its headers, then scripts/build");
}

}  // namespace

Result<std::unique_ptr<Device>> open(const OpenClOptions&, const Clock&) { return left_out(); }
Result<std::vector<std::string>> list_devices() { return left_out(); }

}  // namespace troika::device::opencl
