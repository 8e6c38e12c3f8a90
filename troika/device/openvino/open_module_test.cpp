#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/repository.h"
#include "troika/device/openvino/openvino_device.h"

namespace troika::device::openvino {
namespace {

TEST(OpenModule, SaysWhatIsMissing) {
  OpenVinoOptions options;
  options.name = "openvino@1";
  options.module_path = "/nowhere/libtroika_openvino.so";
  const auto device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  for (const char* part : {"openvino@1", "/nowhere/libtroika_openvino.so", "scripts/bootstrap"}) {
    EXPECT_NE(device.error().message.find(part), std::string::npos) << device.error().message;
  }
}

TEST(OpenModule, RefusesAFileThatIsNoModule) {
  OpenVinoOptions options;
  options.module_path = repository_path("README.md");
  auto device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
  EXPECT_NE(device.error().message.find("README.md cannot be loaded"), std::string::npos)
      << device.error().message;
  // A library, but not ours.
  Dl_info library;
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "cos"), &library), 0);
  options.module_path = std::string(library.dli_fname);
  device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(device.error().message.find("another build"), std::string::npos)
      << device.error().message;
}

}  // namespace
}  // namespace troika::device::openvino
