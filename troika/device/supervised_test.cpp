#include "troika/device/supervised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <new>

#include "troika/device/work_queue.h"

namespace troika::device {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// What a test and its device share; the device may outlive the test's own variables.
struct Driver {
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  std::promise<void> began;
  std::promise<void> came_back;
  std::atomic<bool> compile_hangs{false};
  std::atomic<bool> task_hangs{false};
  std::atomic<bool> no_memory{false};
  std::atomic<bool> closed{false};

  void hang() {
    began.set_value();
    may_go_on.wait();
    came_back.set_value();
  }
  // Lets go of who hangs, and returns once it is back in the device.
  void end() {
    go_on.set_value();
    came_back.get_future().wait();
  }
};

struct EmptyKernel final : Kernel {};

class DrivenDevice final : public QueuedDevice {
 public:
  explicit DrivenDevice(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {
    info_.name = "driven";
  }
  ~DrivenDevice() override { driver_->closed = true; }

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }
  Result<std::unique_ptr<Kernel>> compile(const Program&) override {
    if (driver_->no_memory) throw std::bad_alloc();
    if (driver_->compile_hangs) driver_->hang();
    RETURN_IF_ERROR(queue_.drain());
    return std::unique_ptr<Kernel>(std::make_unique<EmptyKernel>());
  }
  DeviceStats stats() const override { return queue_.stats(); }

 private:
  WorkQueue& queue() override { return queue_; }

  DeviceInfo info_;
  const std::shared_ptr<Driver> driver_;
  WorkQueue queue_{"driven", {}, system_clock(), [this](const Kernel&, const Bindings&) {
                     if (driver_->task_hangs) driver_->hang();
                     return Status{};
                   }};
};

class SupervisedTest : public ::testing::Test {
 protected:
  const std::shared_ptr<Driver> driver_ = std::make_shared<Driver>();
  std::unique_ptr<Device> device_ =
      supervise(std::make_unique<DrivenDevice>(driver_), milliseconds(200));
};

TEST_F(SupervisedTest, ASoundDeviceIsAsItWas) {
  const auto kernel = device_->compile({});
  ASSERT_TRUE(kernel.has_value());
  const auto fence = device_->submit(**kernel, {}, {});
  ASSERT_TRUE(fence.has_value());
  EXPECT_TRUE(fence->wait().has_value());
  EXPECT_EQ(device_->info().name, "driven");
  EXPECT_EQ(device_->stats().tasks, 1);
  EXPECT_LE(device_->times(*fence).start, device_->times(*fence).end);
  EXPECT_FALSE(device_->lost());
  device_->abandon({ErrorCode::kDeviceFailed, "pulled out"});
  EXPECT_TRUE(device_->lost());
  EXPECT_FALSE(device_->stuck());
  EXPECT_EQ(device_->compile({}).error().message, "pulled out");
  device_.reset();
  EXPECT_TRUE(driver_->closed);
}

TEST_F(SupervisedTest, NoMemoryToCompileIsAnError) {
  driver_->no_memory = true;
  EXPECT_EQ(device_->compile({}).error().code, ErrorCode::kOutOfMemory);
  driver_->no_memory = false;
  EXPECT_TRUE(device_->compile({}).has_value());
}

TEST_F(SupervisedTest, ACompilationThatHangsLosesTheDeviceAndEnds) {
  const auto kernel = device_->compile({});
  driver_->compile_hangs = true;
  const auto hung = device_->compile({});
  ASSERT_FALSE(hung.has_value());
  EXPECT_EQ(hung.error().code, ErrorCode::kDeviceFailed);
  EXPECT_THAT(hung.error().message, HasSubstr("driven hangs"));
  EXPECT_TRUE(device_->lost());
  EXPECT_TRUE(device_->stuck());
  EXPECT_EQ(device_->submit(**kernel, {}, {}).error().message, hung.error().message);
  EXPECT_EQ(device_->compile({}).error().message, hung.error().message);
  EXPECT_EQ(device_->stats().tasks, 0);
  device_.reset();
  EXPECT_FALSE(driver_->closed) << "somebody is still in it";
  driver_->end();
}

TEST_F(SupervisedTest, ADeviceWithATaskThatHangsCanBeClosed) {
  const auto kernel = device_->compile({});
  driver_->task_hangs = true;
  ASSERT_TRUE(device_->submit(**kernel, {}, {}).has_value());
  driver_->began.get_future().wait();
  device_->abandon({ErrorCode::kDeviceFailed, "given up"});
  ASSERT_TRUE(device_->stuck());
  device_.reset();
  EXPECT_FALSE(driver_->closed) << "somebody is still in it";
  driver_->end();
}

}  // namespace
}  // namespace troika::device
