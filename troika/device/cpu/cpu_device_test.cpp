#include "troika/device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "troika/device/cpu/kernels/kernels.h"

namespace troika::device::cpu {
namespace {

using graph::Op;
using graph::OpKind;
using std::chrono::milliseconds;

constexpr int64_t kWidth = 24;
constexpr int64_t kRows = 3;

// One matrix of ones, K = N = kWidth: a product makes every output the sum of its row.
class CpuDeviceTest : public ::testing::Test {
 protected:
  CpuDeviceTest() : ones_(kWidth * kWidth, 1.0f) {
    weight_.rows = kWidth;
    weight_.cols = kWidth;
    weight_.data = reinterpret_cast<const std::byte*>(ones_.data());
    for (int i = 0; i < 2; ++i) {
      graph::Tensor tensor;
      tensor.width = kWidth;
      tensor.producer = i - 1;
      graph_.tensors.push_back(tensor);
    }
    Op op;
    op.kind = OpKind::kMatMul;
    op.inputs = {0};
    op.output = 1;
    op.weight = &weight_;
    graph_.ops = {op};
    batch_.n_rows = kRows;
  }

  static std::unique_ptr<Device> open_device(int threads = 1) {
    CpuOptions options;
    options.threads = threads;
    auto device = open(options);
    EXPECT_TRUE(device.has_value());
    return std::move(*device);
  }

  Program program() const {
    Program program;
    program.graph = &graph_;
    program.ops = {0};
    program.tensors = {0, 1};
    program.outputs = {1};
    program.max_rows = kRows;
    return program;
  }

  // A product from one buffer to another.
  struct Buffers {
    std::vector<float> floats = std::vector<float>(kRows * kWidth, 1.0f);
    TensorView view() {
      return {reinterpret_cast<std::byte*>(floats.data()), kWidth * int64_t{sizeof(float)}};
    }
  };
  using Views = std::array<TensorView, 2>;
  Bindings bind(const Views& views) const { return {views, &batch_}; }

  std::vector<float> ones_;
  model::Weight weight_;
  graph::Graph graph_;
  BatchView batch_;
};

// Where the weights of a slice lie is nobody's business but the device's.
TEST_F(CpuDeviceTest, ACopiedSliceGivesTheBitsOfOneThatIsNot) {
  constexpr int64_t kBegin = 8;
  constexpr int64_t kInputs = 12;
  for (size_t i = 0; i < ones_.size(); ++i) ones_[i] = std::sin(static_cast<float>(i));
  graph_.tensors[0].width = kInputs;
  graph_.ops[0].k_begin = kBegin;
  std::vector<std::vector<float>> results;
  for (const int64_t max_rows : {kRows, int64_t{64}}) {  // few: copied
    const auto device = open_device();
    Program slice = program();
    slice.max_rows = max_rows;
    auto kernel = device->compile(slice);
    ASSERT_TRUE(kernel.has_value());
    Buffers x;
    Buffers y;
    for (size_t i = 0; i < x.floats.size(); ++i) x.floats[i] = std::cos(static_cast<float>(i));
    const Views views = {x.view(), y.view()};
    const auto fence = device->submit(**kernel, bind(views), {});
    ASSERT_TRUE(fence.has_value() && fence->wait().has_value());
    results.push_back(y.floats);
    const int64_t held = device->stats().own_bytes;
    kernel->reset();
    const int64_t copied = kWidth * kInputs * int64_t{sizeof(float)};
    EXPECT_EQ(held - device->stats().own_bytes, max_rows == kRows ? copied : 0);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(CpuDeviceTest, RunsTasksInTheOrderSubmitted) {
  for (const int threads : {1, 3}) {
    const auto device = open_device(threads);
    const auto kernel = device->compile(program());
    ASSERT_TRUE(kernel.has_value());
    // a -> b -> a -> ...: each result is kWidth times the last only if nothing is out of order.
    Buffers a;
    Buffers b;
    const Views there = {a.view(), b.view()};
    const Views back = {b.view(), a.view()};
    constexpr int kTasks = 20;
    std::vector<Fence> fences;
    for (int i = 0; i < kTasks; ++i) {
      const auto fence = device->submit(**kernel, bind(i % 2 == 0 ? there : back), {});
      ASSERT_TRUE(fence.has_value());
      fences.push_back(*fence);
    }
    ASSERT_TRUE(fences.back().wait().has_value());
    for (const Fence& fence : fences) EXPECT_TRUE(fence.reached());
    const float expected = static_cast<float>(std::pow(static_cast<double>(kWidth), kTasks));
    for (const float value : a.floats) EXPECT_NEAR(value / expected, 1.0f, 1e-5f);

    TimePoint last_end{};
    for (const Fence& fence : fences) {
      const TaskTimes times = device->times(fence);
      EXPECT_GT(times.queued, TimePoint::zero());
      EXPECT_GE(times.start, times.queued);
      EXPECT_GE(times.start, last_end);
      EXPECT_GE(times.end, times.start);
      last_end = times.end;
    }
  }
}

TEST_F(CpuDeviceTest, WaitsForAnotherDevice) {
  const auto first = open_device();
  const auto second = open_device(2);
  const auto first_kernel = first->compile(program());
  const auto second_kernel = second->compile(program());
  ASSERT_TRUE(first_kernel && second_kernel);
  Buffers a;
  Buffers b;
  const Views there = {a.view(), b.view()};
  const Views back = {b.view(), a.view()};
  Timeline gate;
  std::vector<Fence> before = {{&gate, 1}};
  for (int i = 0; i < 4; ++i) {
    const auto fence = i % 2 == 0 ? first->submit(**first_kernel, bind(there), before)
                                  : second->submit(**second_kernel, bind(back), before);
    ASSERT_TRUE(fence.has_value());
    before = {*fence};
  }
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(before[0].reached());
  EXPECT_EQ(a.floats[0], 1.0f);
  gate.signal(1);
  ASSERT_TRUE(before[0].wait().has_value());
  EXPECT_EQ(a.floats[0], std::pow(static_cast<float>(kWidth), 4.0f));
}

TEST_F(CpuDeviceTest, TwoDevicesComputeAtOnce) {
  const auto first = open_device(2);
  const auto second = open_device(2);
  const auto first_kernel = first->compile(program());
  const auto second_kernel = second->compile(program());
  ASSERT_TRUE(first_kernel && second_kernel);
  for (int round = 0; round < 50; ++round) {
    std::array<Buffers, 4> buffers;
    const Views one = {buffers[0].view(), buffers[1].view()};
    const Views two = {buffers[2].view(), buffers[3].view()};
    const auto a = first->submit(**first_kernel, bind(one), {});
    const auto b = second->submit(**second_kernel, bind(two), {});
    ASSERT_TRUE(a && b);
    ASSERT_TRUE(a->wait() && b->wait());
    for (const float value : buffers[1].floats) ASSERT_EQ(value, kWidth);
    for (const float value : buffers[3].floats) ASSERT_EQ(value, kWidth);
  }
}

TEST_F(CpuDeviceTest, AbandonFailsWhatWaitsAndRefusesMore) {
  const auto device = open_device();
  const auto kernel = device->compile(program());
  ASSERT_TRUE(kernel.has_value());
  Buffers a;
  Buffers b;
  const Views views = {a.view(), b.view()};
  const auto done = device->submit(**kernel, bind(views), {});
  ASSERT_TRUE(done && done->wait());
  // The first task waits for something that never comes, the second one behind it.
  Timeline never;
  const std::array<Fence, 1> blocked = {Fence{&never, 1}};
  const auto first = device->submit(**kernel, bind(views), blocked);
  const auto second = device->submit(**kernel, bind(views), {});
  ASSERT_TRUE(first && second);
  std::thread breaker([&] {
    std::this_thread::sleep_for(milliseconds(2));
    device->abandon({ErrorCode::kDeviceFailed, "pulled out"});
  });
  for (const Fence& fence : {*first, *second}) {
    const Status status = fence.wait();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().message, "pulled out");
  }
  breaker.join();
  EXPECT_TRUE(done->wait().has_value());
  const auto refused = device->submit(**kernel, bind(views), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kDeviceFailed);
  const auto not_compiled = device->compile(program());
  ASSERT_FALSE(not_compiled.has_value());
  EXPECT_EQ(not_compiled.error().code, ErrorCode::kDeviceFailed);
}

// Buffers may be freed as soon as the fences have failed (a sanitizer watches).
TEST_F(CpuDeviceTest, NothingRunsAnyMoreOnceFencesHaveFailed) {
  for (int round = 0; round < 20; ++round) {
    const auto device = open_device(2);
    auto kernel = device->compile(program());
    ASSERT_TRUE(kernel.has_value());
    auto buffers = std::make_unique<std::array<Buffers, 2>>();
    const Views views = {(*buffers)[0].view(), (*buffers)[1].view()};
    Fence last;
    for (int i = 0; i < 200; ++i) last = *device->submit(**kernel, bind(views), {});
    std::thread breaker([&] { device->abandon({ErrorCode::kDeviceFailed, "pulled out"}); });
    static_cast<void>(last.wait());
    buffers.reset();
    kernel->reset();
    breaker.join();
  }
}

TEST_F(CpuDeviceTest, AFailedWaitSkipsThePassAndLeavesTheDeviceSound) {
  const auto device = open_device();
  const auto kernel = device->compile(program());
  ASSERT_TRUE(kernel.has_value());
  Buffers a;
  Buffers b;
  const Views views = {a.view(), b.view()};
  Timeline broken;
  std::atomic<bool> spoiled{false};
  SubmitOptions options;
  options.spoiled = &spoiled;
  const std::array<Fence, 1> waits = {Fence{&broken, 1}};
  const auto first = device->submit(**kernel, bind(views), waits, options);
  const auto second = device->submit(**kernel, bind(views), {}, options);
  ASSERT_TRUE(first && second);
  broken.fail({ErrorCode::kDeviceFailed, "the other device is gone"});
  ASSERT_TRUE(first->wait() && second->wait());
  EXPECT_TRUE(spoiled);
  EXPECT_FALSE(device->lost());
  EXPECT_EQ(b.floats[0], 1.0f);  // neither was run
  const auto next = device->submit(**kernel, bind(views), {});
  ASSERT_TRUE(next && next->wait());
  EXPECT_EQ(b.floats[0], static_cast<float>(kWidth));
}

TEST_F(CpuDeviceTest, ClosesWithWorkInItsQueue) {
  for (const bool blocked : {false, true}) {
    const TimePoint start = system_clock().now();
    Timeline never;
    Buffers a;
    Buffers b;
    const Views views = {a.view(), b.view()};
    std::unique_ptr<Kernel> kernel;
    const auto device = open_device(2);
    kernel = std::move(*device->compile(program()));
    const std::vector<Fence> waits(blocked ? 1 : 0, Fence{&never, 1});
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(device->submit(*kernel, bind(views), waits).has_value());
    }
    EXPECT_LT(to_seconds(system_clock().now() - start), 10);
  }
}

TEST_F(CpuDeviceTest, KeepsTheTimesOfAsManyTasksAsOnePassMayHave) {
  const auto device = open_device();
  Program empty;
  empty.graph = &graph_;
  const auto kernel = device->compile(empty);
  ASSERT_TRUE(kernel.has_value());
  const Bindings bindings{{}, &batch_};
  constexpr int kTasks = 16384;
  std::vector<Fence> fences;
  for (int i = 0; i < kTasks; ++i) fences.push_back(*device->submit(**kernel, bindings, {}));
  ASSERT_TRUE(fences.back().wait().has_value());
  TimePoint last{};
  for (const Fence& fence : fences) {
    ASSERT_GE(device->times(fence).start, last);
    last = device->times(fence).end;
  }
}

TEST_F(CpuDeviceTest, OptionsAreChecked) {
  CpuOptions options;
  for (const int threads : {0, -1, 4097, INT32_MAX}) {
    options.threads = threads;
    const auto device = open(options);
    ASSERT_FALSE(device.has_value());
    EXPECT_EQ(device.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(device.error().message.find(std::to_string(threads)), std::string::npos);
  }
  options.threads = 1;
  options.kernels = "abacus";
  const auto device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(device.error().message.find("abacus"), std::string::npos);
  for (const KernelTable* table : available_kernels()) {
    options.kernels = std::string(table->name);
    EXPECT_TRUE(open(options).has_value()) << table->name;
  }
}

}  // namespace
}  // namespace troika::device::cpu
