// Devices that are paced to a described chip are profiled on virtual time, and what the profile
// says of them is held against the description: it must come from measuring alone.
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "troika/cost/profiled_cost.h"
#include "troika/device/paced/paced_device.h"
#include "troika/device/work_queue.h"
#include "troika/planner/operator_plan.h"
#include "troika/profile/measure/profiler.h"

namespace troika {
namespace {

using planner::OperatorCut;

constexpr double kStretch = 2;
constexpr double kSyncUs = 400;

// Stands still until a device lets time pass.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(now_.load()); }
  void pass_until(TimePoint until) { now_ = std::max(now_.load(), until.count()); }

 private:
  std::atomic<TimePoint::rep> now_{0};
};

// Takes any program and computes nothing: a paced device lets the time pass.
class Idle final : public device::QueuedDevice {
 public:
  explicit Idle(device::DeviceKind kind)
      : queue_("idle", {}, system_clock(), [](const auto&, const auto&) { return Status{}; }) {
    info_.kind = kind;
    info_.version = "idle 1";
  }
  const device::DeviceInfo& info() const override { return info_; }
  bool supports(const graph::Graph&, graph::OpId) const override { return true; }
  Result<std::unique_ptr<device::Kernel>> compile(const device::Program&) override {
    return std::make_unique<device::Kernel>();
  }
  device::DeviceStats stats() const override { return queue_.stats(); }

 private:
  device::WorkQueue& queue() override { return queue_; }
  device::DeviceInfo info_;
  device::WorkQueue queue_;
};

// One layer with the products of HeteroInfer's table. Nobody reads the weights.
struct Products {
  using Extents = std::vector<std::pair<int64_t, int64_t>>;
  explicit Products(const Extents& extents = {
                        {4096, 4096}, {28672, 4096}, {4096, 14336}, {14336, 4096}}) {
    for (const auto& [n, k] : extents) {
      model::Weight weight;
      weight.type = model::TensorType::kQ4_0;
      weight.rows = n;
      weight.cols = k;
      weights.push_back(weight);
    }
    graph.n_layers = 1;
    for (const model::Weight& weight : weights) {
      graph::Op op;
      op.kind = graph::OpKind::kMatMul;
      op.layer = 0;
      op.inputs = {add_tensor(weight.cols)};
      op.output = add_tensor(weight.rows);
      op.weight = &weight;
      graph.ops.push_back(op);
    }
  }
  graph::TensorId add_tensor(int64_t width) {
    graph::Tensor tensor;
    tensor.width = width;
    graph.tensors.push_back(tensor);
    return static_cast<graph::TensorId>(graph.tensors.size() - 1);
  }
  std::vector<model::Weight> weights;
  graph::Graph graph;
};

std::unique_ptr<device::Device> paced(const std::string& unit, device::DeviceKind kind,
                                      ManualClock& clock) {
  device::paced::PacedOptions options;
  options.name = unit;
  options.pace =
      *device::paced::parse_pace(fmt::format("snapdragon-8-gen-3.{}@{}", unit, kStretch));
  options.compute = false;
  options.build_graphs = true;
  if (unit == "gpu") options.task_time = std::chrono::microseconds(static_cast<int>(kSyncUs));
  options.sleep_until = [&clock](TimePoint until) { clock.pass_until(until); };
  return std::move(*device::paced::open(std::move(options), std::make_unique<Idle>(kind), clock));
}

class ProfileRecovery : public testing::Test {
 protected:
  // Profiled once for all tests.
  static void SetUpTestSuite() {
    ManualClock gpu_clock, npu_clock;
    std::vector<std::unique_ptr<device::Device>> devices;
    devices.push_back(paced("gpu", device::DeviceKind::kGpu, gpu_clock));
    devices.push_back(paced("npu", device::DeviceKind::kNpu, npu_clock));
    const Products products;
    profile::ProfilerOptions options;
    options.max_rows = 384;
    options.most_macs = 1e12;
    options.layers = false;
    profile::Profile profile;
    const Status done =
        profile::measure_profile(products.graph, devices, options, profile, npu_clock);
    ASSERT_TRUE(done.has_value()) << done.error().message;
    ASSERT_TRUE(profile.complete);
    auto made = cost::ProfiledCost::create(std::move(profile));
    ASSERT_TRUE(made.has_value()) << made.error().message;
    cost_ = std::make_unique<cost::ProfiledCost>(std::move(*made));
  }
  static void TearDownTestSuite() { cost_.reset(); }

  static const profile::DeviceProfile& device(const char* name) {
    return *cost_->profile().device(name);
  }
  static double npu_us(int64_t rows, int64_t n, int64_t k, bool weight_in_place = false) {
    cost::Product product{rows, n, k};
    product.weight_bits = 4.5;
    product.weight_stationary = weight_in_place;
    return cost_->product(1, product)->work_us();
  }

  static std::unique_ptr<cost::ProfiledCost> cost_;
};
std::unique_ptr<cost::ProfiledCost> ProfileRecovery::cost_;

TEST_F(ProfileRecovery, FindsTheTile) {
  EXPECT_EQ(device("npu").row_tile, 32);
  EXPECT_EQ(device("npu").n_tile, 32);
  EXPECT_EQ(device("gpu").row_tile, 1);
  EXPECT_EQ(device("gpu").n_tile, 1);
  EXPECT_NEAR(npu_us(129, 4096, 4096), npu_us(160, 4096, 4096), 1e-6);
  EXPECT_GT(npu_us(161, 4096, 4096), 1.1 * npu_us(160, 4096, 4096));
}

TEST_F(ProfileRecovery, FindsWhatTheOrderOfOperandsCosts) {
  EXPECT_TRUE(device("npu").chooses_order);
  EXPECT_FALSE(device("gpu").chooses_order);
  // N / K = 3.5
  const double ratio = npu_us(256, 14336, 4096, true) / npu_us(256, 14336, 4096, false);
  EXPECT_NEAR(ratio, 6, 0.6);
}

TEST_F(ProfileRecovery, FindsThatManyInputsAreSlow) {
  const double square = npu_us(256, 4096, 4096);
  EXPECT_NEAR(npu_us(256, 4096, 14336) / square, 3.5 * 3.5, 0.1);
  EXPECT_NEAR(npu_us(256, 14336, 4096) / square, 3.5, 0.1);
}

TEST_F(ProfileRecovery, FindsTheLawOfBuildingGraphs) {
  // Four graphs are a model's: 152 ms + 1.90 ms/token.
  const auto model_ms = [](int64_t rows) { return 4 * cost_->build_us(1, rows) / kStretch * 1e-3; };
  EXPECT_NEAR(model_ms(1000) - model_ms(100), 900 * 1.90, 1);
  EXPECT_NEAR(model_ms(100), 152 + 190, 1);
  EXPECT_EQ(cost_->build_us(0, 100), 0);
}

TEST_F(ProfileRecovery, FindsTheFixedCostOfATask) {
  EXPECT_NEAR(device("gpu").launch.task_us, kSyncUs, 1);
  EXPECT_NEAR(device("npu").launch.task_us, 0, 1);
}

TEST_F(ProfileRecovery, StatesItsErrorFromPointsThatItDidNotUse) {
  for (const profile::DeviceProfile& one : cost_->profile().devices) {
    EXPECT_GT(one.checks.size(), 10u) << one.name;
    for (const profile::CheckPoint& check : one.checks) {
      EXPECT_LT(check.error(), 0.2)
          << one.name << ": " << check.rows << " rows, " << check.n << "x" << check.k
          << ", measured " << check.measured_us << ", predicted " << check.predicted_us;
    }
  }
}

TEST_F(ProfileRecovery, PlansTheProductsAsThePublishedTable) {
  struct Row {
    int64_t n, k, first, last;
    OperatorCut cut;
    double gpu;  // its share of the weight; of an activation-centric row 0
  };
  const Row rows[] = {
      {4096, 4096, 1, 1, OperatorCut::kWeightCentric, 0.5},
      {28672, 4096, 1, 1, OperatorCut::kWeightCentric, 0.75},
      {4096, 14336, 1, 1, OperatorCut::kNone, 1},
      {4096, 4096, 128, 128, OperatorCut::kNone, 0},
      {4096, 4096, 193, 255, OperatorCut::kPadding, 0},
      {4096, 4096, 256, 256, OperatorCut::kNone, 0},
      {4096, 4096, 257, 272, OperatorCut::kActivationCentric, 0},
      {4096, 14336, 256, 256, OperatorCut::kWeightCentric, 0.4},
      {4096, 14336, 257, 383, OperatorCut::kHybrid, 0.4},
  };
  for (const Row& row : rows) {
    for (int64_t m = row.first; m <= row.last; m += 7) {
      cost::Product product{m, row.n, row.k};
      product.weight_bits = 4.5;
      const auto plan =
          planner::plan_operator(*cost_, product, *planner::strategy_from("heteroinfer"));
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      const auto& chosen = plan->chosen;
      // Lengths at which nothing is padded are the rule's other name.
      const bool whole = m % 32 == 0;
      const OperatorCut cut = whole && row.cut == OperatorCut::kHybrid ? OperatorCut::kWeightCentric
                              : whole && row.cut == OperatorCut::kPadding ? OperatorCut::kNone
                                                                          : row.cut;
      EXPECT_EQ(planner::to_string(chosen.cut), planner::to_string(cut))
          << row.n << "x" << row.k << ", " << m << " tokens: " << plan->reason;
      double gpu = 0;
      for (const planner::Slice& slice : chosen.slices) {
        if (slice.device == 0) gpu = slice.share;
      }
      if (cut != OperatorCut::kActivationCentric) {
        EXPECT_NEAR(gpu, row.gpu, 0.001) << row.n << "x" << row.k << ", " << m << " tokens";
      }
    }
  }
}

// What was measured, in the order in which it was, without what a clock stamped on it.
std::string records(profile::Profile profile) {
  profile.took_s = 0;
  for (profile::DeviceProfile& device : profile.devices) device.launch = {};
  return to_json(profile);
}

TEST(InterruptedProfile, TakenUpAgainEndsWithTheSameRecords) {
  const Products products({{1024, 512}, {512, 2048}});
  // Stops after so many questions; tells how many there were.
  const auto measure = [&](profile::Profile& profile, int64_t stop_after) {
    ManualClock clock;
    std::vector<std::unique_ptr<device::Device>> devices;
    devices.push_back(paced("npu", device::DeviceKind::kNpu, clock));
    profile::ProfilerOptions options;
    options.max_rows = 256;
    options.layers = false;
    int64_t asked = 0;
    double part = 0;
    bool forward = true;
    options.cancelled = [&] { return ++asked > stop_after; };
    options.progress = [&](double now) {
      forward = forward && now >= part && now <= 1;
      part = now;
    };
    const Status done = profile::measure_profile(products.graph, devices, options, profile, clock);
    EXPECT_TRUE(forward);
    EXPECT_EQ(done.has_value(), asked <= stop_after);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::kCancelled);
    }
    EXPECT_EQ(profile.complete, done.has_value());
    return asked;
  };
  profile::Profile whole;
  const int64_t all = measure(whole, INT64_MAX);
  ASSERT_GT(whole.devices[0].products.size(), 20u);
  // Once, early or late; and again and again.
  for (const double part : {0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99}) {
    profile::Profile taken_up;
    measure(taken_up, static_cast<int64_t>(part * static_cast<double>(all)));
    EXPECT_FALSE(taken_up.complete);
    auto read = profile::from_json(profile::to_json(taken_up));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    measure(*read, INT64_MAX);
    EXPECT_TRUE(records(*read) == records(whole)) << part;
  }
  profile::Profile taken_up;
  for (int run = 0; run < 12 && !taken_up.complete; ++run) measure(taken_up, all / 4);
  EXPECT_TRUE(records(taken_up) == records(whole));
}

}  // namespace
}  // namespace troika
