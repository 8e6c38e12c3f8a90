#include "troika/device/registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "troika/base/cores.h"

namespace troika::device {
namespace {

using ::testing::HasSubstr;

Error refused(const std::string& text) {
  const auto devices = open_devices(text, {});
  EXPECT_FALSE(devices.has_value()) << text;
  return devices ? Error{} : devices.error();
}

TEST(Registry, OpensSeveralKindsInTheOrderWritten) {
  const int core = allowed_cores().front();
  const auto text =
      fmt::format("systolic@{0},cpu,faulty:slow@2:systolic,faulty:nan@5:cpu@{0}", core);
  const auto devices = open_devices(text, {});
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  ASSERT_EQ(devices->size(), 4u);
  const DeviceInfo& npu = (*devices)[0]->info();
  EXPECT_EQ(npu.name, fmt::format("systolic@{}", core));
  EXPECT_EQ(npu.kind, DeviceKind::kNpu);
  EXPECT_EQ(npu.cores, std::vector<int>{core});
  EXPECT_EQ((*devices)[1]->info().name, "cpu");
  const DeviceInfo& slow = (*devices)[2]->info();
  EXPECT_EQ(slow.name, "faulty:slow@2:systolic");
  EXPECT_EQ(slow.kind, DeviceKind::kNpu);
  EXPECT_EQ(slow.standard_rows, npu.standard_rows);
  EXPECT_FALSE(slow.exact);
  const DeviceInfo& nan = (*devices)[3]->info();
  EXPECT_EQ(nan.name, fmt::format("faulty:nan@5:cpu@{}", core));
  EXPECT_EQ(nan.kind, DeviceKind::kCpu);
  EXPECT_EQ(nan.cores, std::vector<int>{core});
  EXPECT_TRUE(nan.exact);
}

TEST(Registry, PacesDevicesToDescribedUnits) {
  const auto devices =
      open_devices("systolic:snapdragon-8-gen-3,paced:core-ultra-5-125h.gpu@50:cpu", {});
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  const DeviceInfo& npu = (*devices)[0]->info();
  EXPECT_EQ(npu.name, "systolic:snapdragon-8-gen-3");
  EXPECT_EQ(npu.kind, DeviceKind::kNpu);
  EXPECT_THAT(npu.description, HasSubstr("paced to npu of snapdragon-8-gen-3"));
  EXPECT_THAT((*devices)[1]->info().description, HasSubstr("stretched by 50"));
}

TEST(Registry, SaysWhatItCannotOpen) {
  EXPECT_EQ(refused("abacus").code, ErrorCode::kNotFound);
  EXPECT_THAT(refused("abacus").message, HasSubstr("cpu, systolic, openvino, opencl"));
  EXPECT_EQ(refused("faulty:nan@1:abacus").code, ErrorCode::kNotFound);
  EXPECT_EQ(refused("faulty").code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused("faulty:nan@1").message, HasSubstr("needs another one to wrap"));
  EXPECT_THAT(refused("faulty:oom").message, HasSubstr("faulty:nan@7:cpu@1"));
  EXPECT_THAT(refused("faulty:explode:cpu").message, HasSubstr("\"explode\""));
  EXPECT_THAT(refused("cpu:fast:systolic").message, HasSubstr("wraps no other device"));
  EXPECT_THAT(refused("paced:z80.gpu:cpu").message, HasSubstr("core-ultra-5-125h, "));
  EXPECT_THAT(refused("paced:snapdragon-8-gen-3.gpu").message, HasSubstr("needs another one"));
  EXPECT_THAT(refused("paced").message, HasSubstr("e.g. paced:snapdragon-8-gen-3.gpu@250:cpu@0"));
  for (const char* instance : {"GPU", "cpu", "-inputs", "CPU-inputs-inputs"}) {
    const Error error = refused(fmt::format("openvino:{}", instance));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << instance;
    EXPECT_THAT(error.message, HasSubstr(fmt::format("no instance \"{}\"", instance)));
    EXPECT_THAT(error.message, HasSubstr("openvino:inputs, openvino:CPU-inputs"));
  }
  EXPECT_EQ(refused("systolic:z80").code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("faulty:open-fails:cpu").code, ErrorCode::kDeviceFailed);
}

}  // namespace
}  // namespace troika::device
