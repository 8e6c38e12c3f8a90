#include "troika/device/paced/paced_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "troika/device/cpu/cpu_device.h"
#include "troika/soc/execution.h"

namespace troika::device::paced {
namespace {

using ::testing::HasSubstr;

// Stands still until a device lets time pass.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(now_.load()); }
  void pass_until(TimePoint until) { now_ = std::max(now_.load(), until.count()); }

 private:
  std::atomic<TimePoint::rep> now_{0};
};

// A product with a matrix of ones: every output is K.
struct Subject {
  Subject(int64_t outputs, int64_t inputs, int64_t n_rows) : n(outputs), k(inputs), rows(n_rows) {
    ones.assign(static_cast<size_t>(n * k), 1.0f);
    weight.rows = n;
    weight.cols = k;
    weight.data = reinterpret_cast<const std::byte*>(ones.data());
    graph::Tensor x_tensor;
    x_tensor.name = "x";
    x_tensor.width = k;
    graph::Tensor y_tensor;
    y_tensor.name = "y";
    y_tensor.width = n;
    y_tensor.producer = 0;
    graph.tensors = {x_tensor, y_tensor};
    graph::Op op;
    op.kind = graph::OpKind::kMatMul;
    op.inputs = {0};
    op.output = 1;
    op.weight = &weight;
    graph.ops = {op};
    batch.n_rows = rows;
    x.assign(static_cast<size_t>(rows * k), 1.0f);
    y.assign(static_cast<size_t>(rows * n), 0.0f);
    views = {TensorView{reinterpret_cast<std::byte*>(x.data()), k * int64_t{sizeof(float)}},
             TensorView{reinterpret_cast<std::byte*>(y.data()), n * int64_t{sizeof(float)}}};
    program.graph = &graph;
    program.ops = {0};
    program.tensors = {0, 1};
    program.outputs = {1};
    program.max_rows = rows;
  }

  // How long a task takes on the device's clock.
  double run(Device& device) {
    auto kernel = device.compile(program);
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto fence = device.submit(**kernel, {views, &batch}, {}, {});
    EXPECT_TRUE(fence.has_value());
    const Status done = fence->wait();
    EXPECT_TRUE(done.has_value()) << done.error().message;
    const TaskTimes times = device.times(*fence);
    return to_us(times.end - times.start);
  }
  bool is_right() const {
    return std::all_of(y.begin(), y.end(),
                       [&](float value) { return value == static_cast<float>(k); });
  }

  int64_t n, k, rows;
  std::vector<float> ones;
  model::Weight weight;
  graph::Graph graph;
  BatchView batch;
  std::vector<float> x, y;
  std::array<TensorView, 2> views;
  Program program;
};

struct Opened {
  ManualClock clock;
  std::unique_ptr<Device> device;
};

std::unique_ptr<Opened> opened(const std::string& pace, PacedOptions options = {}) {
  auto result = std::make_unique<Opened>();
  options.name = "paced:" + pace + ":cpu";
  options.pace = *parse_pace(pace);
  options.sleep_until = [clock = &result->clock](TimePoint until) { clock->pass_until(until); };
  result->device = std::move(*open(std::move(options), std::move(*cpu::open({})), result->clock));
  return result;
}

TEST(PacedDevice, ComputesAndTakesAsLongAsTheUnitTimesTheStretch) {
  Subject subject(64, 96, 5);
  soc::Product product{5, 64, 96};
  product.weight_bits = 32;
  product.weight_stationary = true;
  const Pace pace = *parse_pace("snapdragon-8-gen-3.gpu@100");
  const double us = soc::stored_product_work(pace.unit, product)->work_us();
  EXPECT_GT(us, 0.1);
  const auto gpu = opened("snapdragon-8-gen-3.gpu@100");
  EXPECT_NEAR(subject.run(*gpu->device), 100 * us, 0.002);
  EXPECT_TRUE(subject.is_right());
  const auto twice = opened("snapdragon-8-gen-3.gpu@200");
  EXPECT_NEAR(subject.run(*twice->device), 200 * us, 0.002);
}

TEST(PacedDevice, AStaticUnitIsAStaircaseAndDependsOnTheOrder) {
  PacedOptions options;
  options.compute = false;
  const auto npu = opened("snapdragon-8-gen-3.npu@1000", options);
  // Enough rows that arithmetic decides, whatever the weights' bytes.
  const auto us = [&](int64_t rows, bool input_stationary) {
    Subject subject(512, 256, rows);
    subject.weight.type = model::TensorType::kQ4_0;
    subject.program.input_stationary = input_stationary;
    return subject.run(*npu->device);
  };
  const double four_tiles = us(128, true);
  EXPECT_NEAR(us(97, true), four_tiles, 0.001);
  EXPECT_NEAR(us(129, true), 1.25 * four_tiles, 0.001 * four_tiles);
  EXPECT_NEAR(us(256, true), 2 * four_tiles, 0.001 * four_tiles);
  EXPECT_NEAR(us(128, false), 1.714 * 2 * four_tiles, 0.001 * four_tiles);
}

TEST(PacedDevice, AddsAFixedTimeThatIsNotStretched) {
  Subject subject(64, 96, 5);
  const auto plain = opened("snapdragon-8-gen-3.gpu@100");
  PacedOptions options;
  options.task_time = std::chrono::microseconds(400);
  const auto slow = opened("snapdragon-8-gen-3.gpu@100", options);
  EXPECT_NEAR(subject.run(*slow->device), subject.run(*plain->device) + 400, 0.002);
}

TEST(PacedDevice, SleepsOnTheMachinesClock) {
  Subject subject(64, 96, 5);
  PacedOptions options;
  options.name = "paced";
  options.pace = *parse_pace("snapdragon-8-gen-3.gpu@100");
  options.task_time = std::chrono::milliseconds(20);
  const auto device = std::move(*open(std::move(options), std::move(*cpu::open({}))));
  EXPECT_GE(subject.run(*device), 20'000);
  EXPECT_TRUE(subject.is_right());
}

TEST(PacedDevice, HasTheFactsOfTheWrappedDeviceAndSaysThatItIsPaced) {
  const auto plain = std::move(*cpu::open({}));
  const auto gpu = opened("snapdragon-8-gen-3.gpu@100");
  const DeviceInfo& info = gpu->device->info();
  EXPECT_EQ(info.name, "paced:snapdragon-8-gen-3.gpu@100:cpu");
  EXPECT_EQ(info.exact, plain->info().exact);
  EXPECT_EQ(info.standard_rows, plain->info().standard_rows);
  EXPECT_NE(info.version, plain->info().version);
  EXPECT_THAT(info.description, HasSubstr("paced to gpu of snapdragon-8-gen-3"));
}

TEST(PacedDevice, AbandonEndsASleep) {
  Subject subject(64, 96, 5);
  PacedOptions options;
  options.name = "paced";
  options.pace = *parse_pace("snapdragon-8-gen-3.gpu");
  options.task_time = std::chrono::hours(1);
  const auto device = std::move(*open(std::move(options), std::move(*cpu::open({}))));
  auto kernel = device->compile(subject.program);
  ASSERT_TRUE(kernel.has_value());
  const auto fence = device->submit(**kernel, {subject.views, &subject.batch}, {}, {});
  ASSERT_TRUE(fence.has_value());
  device->abandon(Error{ErrorCode::kDeviceFailed, "enough"});
  EXPECT_FALSE(device->stuck());
  EXPECT_TRUE(device->lost());
}

TEST(Pace, NamesChipUnitAndStretch) {
  const auto pace = parse_pace("core-ultra-5-125h.npu@12.5");
  ASSERT_TRUE(pace.has_value());
  EXPECT_EQ(pace->chip, "core-ultra-5-125h");
  EXPECT_EQ(pace->unit.name, "npu");
  EXPECT_EQ(pace->stretch, 12.5);
  EXPECT_EQ(parse_pace("core-ultra-5-125h.npu")->stretch, kUsualStretch);
  EXPECT_EQ(pace_of_static_unit("snapdragon-8-gen-3")->unit.name, "npu");
  const std::pair<const char*, const char*> wrong[] = {
      {"gpu", "CHIP.UNIT"},
      {"z80.gpu", ", snapdragon-8-gen-3"},
      {"snapdragon-8-gen-3.tpu", "no unit \"tpu\""},
      {"snapdragon-8-gen-3.cpu", "no unit \"cpu\" that computes"},
      {"snapdragon-8-gen-3.gpu@0.5", "not \"0.5\""},
      {"snapdragon-8-gen-3.gpu@nan", "not \"nan\""},
      {"snapdragon-8-gen-3.gpu@", "not \"\""},
  };
  for (const auto& [text, part] : wrong) {
    const auto refused = parse_pace(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_THAT(refused.error().message, HasSubstr(part));
  }
  EXPECT_FALSE(pace_of_static_unit("z80").has_value());
}

}  // namespace
}  // namespace troika::device::paced
