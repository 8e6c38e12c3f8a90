#include "troika/device/faulty/faulty_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <thread>

#include "troika/device/cpu/cpu_device.h"
#include "troika/device/quarantine.h"
#include "troika/device/work_queue.h"

namespace troika::device::faulty {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 24;
constexpr int64_t kRows = 3;

// A product with a matrix of ones on a `cpu` device with a fault: every output is kWidth. What a
// stuck device may still touch, and so all of it, is kept for ever.
struct Subject {
  explicit Subject(const std::string& fault) {
    device = std::move(*open("faulty:" + fault, *parse_fault(fault), [] { return cpu::open({}); }));
    ones.assign(kWidth * kWidth, 1.0f);
    weight.rows = weight.cols = kWidth;
    weight.data = reinterpret_cast<const std::byte*>(ones.data());
    for (int i = 0; i < 2; ++i) {
      graph::Tensor tensor;
      tensor.name = i == 0 ? "x" : "y";
      tensor.width = kWidth;
      tensor.producer = i - 1;
      graph.tensors.push_back(tensor);
    }
    graph::Op op;
    op.kind = graph::OpKind::kMatMul;
    op.layer = 5;
    op.inputs = {0};
    op.output = 1;
    op.weight = &weight;
    graph.ops = {op};
    batch.n_rows = kRows;
    x.assign(kRows * kWidth, 1.0f);
    y.assign(kRows * kWidth, 0.0f);
    views = {view(x), view(y)};
  }

  static TensorView view(std::vector<float>& rows) {
    return {reinterpret_cast<std::byte*>(rows.data()), kWidth * int64_t{sizeof(float)}};
  }

  Result<std::unique_ptr<Kernel>> compile() {
    Program program;
    program.graph = &graph;
    program.ops = {0};
    program.tensors = {0, 1};
    program.outputs = {1};
    program.max_rows = kRows;
    return device->compile(program);
  }
  Result<Fence> submit(const SubmitOptions& options = {}) {
    return device->submit(*kernel, {views, &batch}, {}, options);
  }
  Status run() {
    ASSIGN_OR_RETURN(const Fence fence, submit());
    return fence.wait();
  }
  bool is_right() const {
    return std::all_of(y.begin(), y.end(), [](float value) { return value == kWidth; });
  }

  std::vector<float> ones;
  model::Weight weight;
  graph::Graph graph;
  BatchView batch;
  std::vector<float> x, y;
  std::array<TensorView, 2> views;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Device> device;  // last: its worker uses all of the above
};

std::unique_ptr<Subject> subject(const std::string& fault) {
  auto made = std::make_unique<Subject>(fault);
  auto kernel = made->compile();
  EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
  made->kernel = std::move(*kernel);
  return made;
}

void expect_device_failed(const Status& status, const std::string& part) {
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kDeviceFailed);
  EXPECT_THAT(status.error().message, HasSubstr(part));
}

TEST(FaultyOpen, FailsHangsOrCrashes) {
  const auto open_as = [](const char* fault) {
    return open("faulty", *parse_fault(fault), [] { return cpu::open({}); });
  };
  const auto refused = open_as("open-fails");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kDeviceFailed);

  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(static_cast<void>(open_as("crash-on-open")), ::testing::KilledBySignal(SIGABRT), "");
  // A process with a thread that hangs in open() still ends.
  EXPECT_EXIT(
      {
        std::thread([&] { static_cast<void>(open_as("open-hangs")); }).detach();
        std::this_thread::sleep_for(milliseconds(20));
        std::_Exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(FaultyOpen, PassesOnWhatTheWrappedDeviceSays) {
  const auto device =
      open("faulty", *parse_fault("nan@1"), []() -> Result<std::unique_ptr<Device>> {
        return make_error(ErrorCode::kNotFound, "no such device");
      });
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kNotFound);
}

TEST(FaultyDevice, HasTheFactsOfTheWrappedDevice) {
  const auto plain = std::move(*cpu::open({}));
  const auto s = subject("oom@1000000");
  const DeviceInfo& info = s->device->info();
  EXPECT_EQ(info.name, "faulty:oom@1000000");
  EXPECT_EQ(info.kind, plain->info().kind);
  EXPECT_EQ(info.exact, plain->info().exact);
  EXPECT_EQ(info.n_tile, plain->info().n_tile);
  EXPECT_EQ(info.capacity_bytes, 1000000);
  EXPECT_NE(info.version, plain->info().version);
  EXPECT_TRUE(s->device->supports(s->graph, 0));
}

TEST(FaultyDevice, ComputesRightUntilItsTaskComes) {
  for (const char* fault : {"nan@4", "inf@4", "lost@4", "hang@4", "slow@1", "oom@100000"}) {
    SCOPED_TRACE(fault);
    const auto s = subject(fault);
    for (int i = 0; i < 3; ++i) {
      s->y.assign(s->y.size(), 0.0f);
      ASSERT_TRUE(s->run().has_value());
      EXPECT_TRUE(s->is_right());
    }
    EXPECT_FALSE(s->device->lost());
    EXPECT_EQ(s->device->stats().tasks, 3);
  }
}

TEST(FaultyDevice, OutsideLayersNoneIsNamed) {
  const auto s = subject("nan@1");
  s->graph.ops[0].layer = -1;
  expect_device_failed(s->run(), "gave NaN or infinite values: mat_mul (y), row 0");
}

TEST(FaultyDevice, NanAndInfAreCaughtAndNamed) {
  for (const std::string fault : {"nan", "inf"}) {
    const auto s = subject(fault + "@3");
    std::atomic<bool> spoiled{false};
    SubmitOptions options;
    options.spoiled = &spoiled;
    ASSERT_TRUE(s->submit(options) && s->submit(options));
    const auto third = s->submit(options);
    ASSERT_TRUE(third.has_value());
    expect_device_failed(third->wait(), "device faulty:" + fault +
                                            "@3 gave NaN or infinite values: "
                                            "mat_mul (y) of layer 5, row 0");
    EXPECT_TRUE(spoiled.load());
    EXPECT_EQ(std::any_of(s->y.begin(), s->y.end(), [](float v) { return std::isnan(v); }),
              fault == "nan");
    EXPECT_TRUE(s->device->lost());
    EXPECT_FALSE(s->device->stuck());
    EXPECT_FALSE(s->submit().has_value());
    EXPECT_FALSE(s->compile().has_value());
  }
}

TEST(FaultyDevice, WrongValuesAreFiniteAndOffEverywhere) {
  const auto s = subject("wrong-values");
  ASSERT_TRUE(s->run().has_value());
  for (const float value : s->y) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_NEAR(std::abs(value / kWidth - 1), 0.25, 1e-6);
  }
  EXPECT_FALSE(s->device->lost());
}

TEST(FaultyDevice, AHangOutlastsBeingAbandonedAndBlocksNobodyElse) {
  std::shared_ptr<Subject> s = subject("hang@2");
  ASSERT_TRUE(s->run().has_value());
  const auto second = s->submit();
  const auto third = s->submit();
  ASSERT_TRUE(second && third);
  WaitPolicy patience;
  patience.timeout = milliseconds(30);
  const Status hangs = second->wait(patience);
  ASSERT_FALSE(hangs.has_value());
  EXPECT_EQ(hangs.error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(s->device->stuck());
  EXPECT_EQ(s->device->stats().tasks, 1);

  std::thread breaker([&] { s->device->abandon({ErrorCode::kDeviceFailed, "pulled out"}); });
  expect_device_failed(second->wait(), "pulled out");
  expect_device_failed(third->wait(), "pulled out");
  breaker.join();
  EXPECT_TRUE(s->device->stuck());
  EXPECT_TRUE(s->device->lost());
  EXPECT_FALSE(s->submit().has_value());
  EXPECT_FALSE(s->compile().has_value());
  quarantine(std::move(s));
}

TEST(FaultyDevice, ALostDeviceFailsEveryCallFromItsTaskOn) {
  const auto s = subject("lost@3");
  ASSERT_TRUE(s->run().has_value());
  const auto second = s->submit();
  ASSERT_TRUE(second.has_value());
  for (int i = 0; i < 3; ++i) {
    const auto refused = s->submit();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kDeviceFailed);
    EXPECT_THAT(refused.error().message, HasSubstr("faulty:lost@3"));
    EXPECT_TRUE(s->device->lost());
  }
  const auto kernel = s->compile();
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, ErrorCode::kDeviceFailed);
  EXPECT_TRUE(second->wait().has_value());  // nobody hangs on what was queued before
  s->device->abandon({ErrorCode::kDeviceFailed, "lost"});
  EXPECT_FALSE(s->device->stuck());
}

TEST(FaultyDevice, RunsOutOfMemory) {
  constexpr int64_t kWeightBytes = kWidth * kWidth * 4;
  for (const auto& fault : {std::string("oom"), fmt::format("oom@{}", kWeightBytes - 1)}) {
    Subject s(fault);
    const auto kernel = s.compile();
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().code, ErrorCode::kOutOfMemory);
    EXPECT_THAT(kernel.error().message, HasSubstr(std::to_string(kWeightBytes)));
  }
  Subject s(fmt::format("oom@{}", kWeightBytes));
  auto first = s.compile();
  EXPECT_TRUE(first.has_value());
  EXPECT_TRUE(s.compile().has_value()) << "the same weight is held once";
  // Another part of it is held beside it, once the first one is gone there is room.
  s.graph.ops[0].n_begin = 8;
  s.graph.tensors[1].width = 16;
  const auto second = s.compile();
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(kWeightBytes + 16 * kWidth * 4)));
  first->reset();
  EXPECT_TRUE(s.compile().has_value());
}

// A device whose tasks take two milliseconds.
class Sleeper final : public Device {
 public:
  static constexpr milliseconds kTaskTime{2};

  const DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }
  Result<std::unique_ptr<Kernel>> compile(const Program&) override {
    return std::make_unique<Kernel>();
  }
  Result<Fence> submit(const Kernel& kernel, const Bindings& bindings, std::span<const Fence> waits,
                       const SubmitOptions& options) override {
    return queue_.submit(kernel, bindings, waits, options);
  }
  TaskTimes times(const Fence& fence) const override { return queue_.times(fence); }
  DeviceStats stats() const override {
    DeviceStats stats = queue_.stats();
    stats.copies = 3;
    stats.copy_bytes = 300;
    stats.own_bytes = 4096;
    return stats;
  }
  void abandon(Error reason) override { queue_.abandon(std::move(reason)); }
  bool lost() const override { return queue_.lost(); }
  bool stuck() const override { return queue_.stuck(); }

 private:
  DeviceInfo info_;
  WorkQueue queue_{"sleeper", {}, system_clock(), [](const Kernel&, const Bindings&) {
                     std::this_thread::sleep_for(kTaskTime);
                     return Status{};
                   }};
};

TEST(FaultyDevice, ASlowOneTakesItsFactorAndCanBeGivenUp) {
  const graph::Graph graph;
  Program empty;
  empty.graph = &graph;
  const BatchView batch;
  for (const char* fault : {"slow@10", "slow@1000"}) {
    const auto device = std::move(*open("slow", *parse_fault(fault), [] {
      return Result<std::unique_ptr<Device>>(std::make_unique<Sleeper>());
    }));
    const auto kernel = device->compile(empty);
    ASSERT_TRUE(kernel.has_value());
    const auto fence = device->submit(**kernel, {{}, &batch}, {});
    ASSERT_TRUE(fence.has_value());
    if (fault == std::string_view("slow@10")) {
      ASSERT_TRUE(fence->wait().has_value());
      const TaskTimes times = device->times(*fence);
      EXPECT_GE(times.end - times.start, 10 * Sleeper::kTaskTime);
      const DeviceStats stats = device->stats();
      EXPECT_EQ(stats.tasks, 1);
      EXPECT_EQ(stats.copies, 3);
      EXPECT_EQ(stats.copy_bytes, 300);
      EXPECT_EQ(stats.own_bytes, 4096);
    } else {
      std::this_thread::sleep_for(5 * Sleeper::kTaskTime);
      device->abandon({ErrorCode::kDeviceFailed, "too slow"});
      EXPECT_FALSE(device->stuck());
    }
  }
}

// What was submitted may be freed once the fences have failed (a sanitizer watches).
TEST(FaultyDevice, NothingRunsAnyMoreOnceFencesHaveFailed) {
  for (int round = 0; round < 20; ++round) {
    auto s = subject("slow@1.5");
    Fence last;
    for (int i = 0; i < 100; ++i) last = *s->submit();
    std::thread breaker([&] { s->device->abandon({ErrorCode::kDeviceFailed, "pulled out"}); });
    static_cast<void>(last.wait());
    s->y = {};
    s->x = {};
    s->kernel.reset();
    breaker.join();
    EXPECT_FALSE(s->device->stuck());
  }
}

TEST(FaultyDevice, ClosesWithWorkInItsQueue) {
  const auto s = subject("nan@1000000");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(s->submit().has_value());
}

}  // namespace
}  // namespace troika::device::faulty
