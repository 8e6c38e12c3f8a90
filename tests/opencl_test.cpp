// Whole answers of the `opencl` device in all its forms, alone and together with `cpu`: alone, what
// it writes stays in its own memory; together, everything that the other reads is copied. Copies
// are made as early and as late as OpenCL allows.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "tests/compare_logits.h"
#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/device/opencl/testing/eager_driver.h"
#include "troika/plan/default_plan.h"
#include "troika/plan/give_to_others.h"
#include "troika/runtime/executor.h"

namespace troika {
namespace {

using runtime::SequenceId;
using runtime::WantLogits;
using Devices = std::vector<std::unique_ptr<device::Device>>;

// FP32 sums in another order: each product loses about 2^-24 of its terms, a few dozen in a row.
constexpr double kExactNmse = 1e-9;
constexpr int64_t kContext = 160;
// PoCL compiles kernels when they first run, those for GPUs for many seconds.
constexpr Duration kPatience = std::chrono::seconds(200);

struct Form {
  const char* name;
  bool gpu_kernels;
  bool own_memory;
};

constexpr Form kForms[] = {
    {"host_shared", false, false}, {"host_own", false, true}, {"gpu_own", true, true}};
constexpr const char* kModels[] = {"q4_0-small.gguf", "mixed-types.gguf"};

class OpenClAnswers : public ::testing::TestWithParam<std::tuple<const char*, Form>> {
 protected:
  OpenClAnswers()
      : model_(*model::Model::load(repository_path("tests/models/") + std::get<0>(GetParam()))),
        graph_(*graph::build(model_)) {
    layout_.n_layers = graph_.n_layers;
    layout_.n_kv_heads = graph_.n_kv_heads;
    layout_.head_dim = graph_.head_dim;
    layout_.n_blocks = 16;
    for (int64_t i = 0; i < 61; ++i) {
      tokens_.push_back(static_cast<model::TokenId>((i * 37 + 11) % graph_.n_vocab));
    }
  }

  static Devices open_cpu() {
    Devices devices;
    device::cpu::CpuOptions options;
    options.threads = 1;
    devices.push_back(std::move(*device::cpu::open(options)));
    return devices;
  }

  Result<std::unique_ptr<device::Device>> open_form() const {
    const Form& form = std::get<1>(GetParam());
    device::opencl::OpenClOptions options;
    options.gpu_kernels = form.gpu_kernels;
    options.own_memory = form.own_memory;
    options.tile_weights = form.gpu_kernels;
    return device::opencl::open(options);
  }

  // A prompt, a few tokens, a fork in the middle of a block, and both going on together; from that
  // pass on, by the second plan.
  using Some = std::span<const std::unique_ptr<device::Device>>;
  Result<std::vector<float>> answer(const plan::Plan& plan, Some devices, const plan::Plan& later,
                                    Some later_devices) const {
    device::SharedPool pool;
    ASSIGN_OR_RETURN(runtime::KvCache cache, runtime::KvCache::create(layout_, kContext, pool));
    std::vector<float> all;
    const SequenceId a = cache.new_sequence();
    const std::span<const model::TokenId> prompt = tokens_;
    const runtime::ExecutorOptions options{.max_logit_rows = kContext, .patience = kPatience};
    std::unique_ptr<runtime::Executor> executor;
    const auto run = [&](const runtime::Batch& batch) -> Status {
      ASSIGN_OR_RETURN(const runtime::Logits logits, executor->forward(batch));
      all.insert(all.end(), logits.data, logits.data + logits.rows * logits.n_vocab);
      return {};
    };
    ASSIGN_OR_RETURN(executor,
                     runtime::Executor::create(graph_, plan, devices, pool, cache, options));
    RETURN_IF_ERROR(run({{{a, prompt.first(41), WantLogits::kAll}}}));
    for (size_t i = 41; i < 44; ++i) {
      RETURN_IF_ERROR(run({{{a, prompt.subspan(i, 1), WantLogits::kLast}}}));
    }
    ASSIGN_OR_RETURN(const SequenceId b, cache.fork(a, 43));
    ASSIGN_OR_RETURN(executor,
                     runtime::Executor::create(graph_, later, later_devices, pool, cache, options));
    RETURN_IF_ERROR(run({{{a, prompt.subspan(44, 1), WantLogits::kLast}}}));
    for (size_t i = 45; i < 47; ++i) {
      RETURN_IF_ERROR(run({{{a, prompt.subspan(i, 1), WantLogits::kLast},
                            {b, prompt.subspan(i + 5, 2), WantLogits::kAll}}}));
    }
    RETURN_IF_ERROR(run({{{b, prompt.first(20), WantLogits::kLast}}}));
    return all;
  }

  Result<std::vector<float>> answer(const plan::Plan& plan, Some devices) const {
    return answer(plan, devices, plan, devices);
  }

  Result<std::vector<float>> reference() const {
    return answer(plan::single_device_plan(graph_, "cpu", kContext, "f32"), open_cpu());
  }

  void SetUp() override {
    if (std::get<1>(GetParam()).own_memory) driver_.emplace();
    auto opened = open_form();
    if (!opened) GTEST_SKIP() << opened.error().message;
    opened_ = std::move(*opened);
    if (opened_->info().kind != device::DeviceKind::kCpu && !std::get<1>(GetParam()).gpu_kernels) {
      GTEST_SKIP() << "kernels for processors, and " << opened_->info().description << " is none";
    }
  }

  std::optional<device::opencl::EagerDriver> driver_;
  std::unique_ptr<device::Device> opened_;
  model::Model model_;
  graph::Graph graph_;
  std::vector<model::TokenId> tokens_;
  device::KvLayout layout_;
};

TEST_P(OpenClAnswers, AloneGiveTheReferencesLogits) {
  Devices devices;
  devices.push_back(std::move(opened_));
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const auto got =
      answer(plan::single_device_plan(graph_, devices[0]->info().name, kContext, "f32"), devices);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  ASSERT_EQ(got->size(), expected->size());
  EXPECT_LE(nmse(*got, *expected), kExactNmse);
  // Only logits come back: once for each of eight passes.
  EXPECT_EQ(devices[0]->stats().copies, std::get<1>(GetParam()).own_memory ? 8 : 0);
}

TEST_P(OpenClAnswers, WithCpuGiveTheReferencesLogits) {
  Devices devices = open_cpu();
  devices.push_back(std::move(opened_));
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const std::vector<device::DeviceInfo> infos = {devices[0]->info(), devices[1]->info()};
  const std::vector<plan::DeviceRates> rates = {{1, 1}, {1, 1}};
  for (const char* rule : {"paired:50/50", "weight-centric:50/50", "k-cut:50/50",
                           "prefill=activation-centric:60/40,decode=paired:70/30"}) {
    SCOPED_TRACE(rule);
    plan::DefaultPlanOptions options;
    options.max_rows = kContext;
    options.split = *plan::parse_split(rule, infos.size());
    const int64_t before = devices[1]->stats().tasks;
    const auto got = answer(plan::default_plan(graph_, infos, rates, options), devices);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    ASSERT_EQ(got->size(), expected->size());
    EXPECT_LE(nmse(*got, *expected), kExactNmse);
    EXPECT_GT(devices[1]->stats().tasks, before);
  }
  if (driver_) {
    EXPECT_GT(driver_->late_copies(), 0);
  }
}

// When the other device is lost: what it knew of the sequences lies in the pool, for each of them.
TEST_P(OpenClAnswers, GoOnAloneWhatWasBegunWithCpu) {
  Devices both = open_cpu();
  both.push_back(std::move(opened_));
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const std::vector<device::DeviceInfo> infos = {both[0]->info(), both[1]->info()};
  const std::vector<plan::DeviceRates> rates = {{1, 1}, {1, 1}};
  plan::DefaultPlanOptions options;
  options.max_rows = kContext;
  options.split = *plan::parse_split("paired:50/50", infos.size());
  const plan::Plan together = plan::default_plan(graph_, infos, rates, options);
  const plan::Plan after = plan::single_device_plan(graph_, infos[1].name, kContext, "f32");
  const auto got = answer(together, both, after, Some(both).last(1));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  ASSERT_EQ(got->size(), expected->size());
  EXPECT_LE(nmse(*got, *expected), kExactNmse);
}

// A driver that refuses a kernel: the other device computes what it is for.
TEST_P(OpenClAnswers, WithoutAKernelGiveTheReferencesLogits) {
  const Form& form = std::get<1>(GetParam());
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  for (const char* broken : {form.gpu_kernels ? "product_few" : "product", "rms_norm"}) {
    SCOPED_TRACE(broken);
    device::opencl::OpenClOptions open;
    open.gpu_kernels = form.gpu_kernels;
    open.own_memory = form.own_memory;
    open.broken_kernel = broken;
    open.device_times = true;
    auto opened = device::opencl::open(open);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    Devices devices = open_cpu();
    devices.push_back(std::move(*opened));
    const std::vector<device::DeviceInfo> infos = {devices[0]->info(), devices[1]->info()};
    const std::vector<plan::DeviceRates> rates = {{1, 1}, {1, 1}};
    plan::DefaultPlanOptions options;
    options.max_rows = kContext;
    plan::Plan plan = plan::default_plan(graph_, infos, rates, options);
    const auto lines = plan::give_to_others(plan, graph_, [&](size_t device, graph::OpId op) {
      return devices[device]->supports(graph_, op);
    });
    ASSERT_TRUE(lines.has_value()) << lines.error().message;
    EXPECT_EQ(lines->size(), 1u);
    SCOPED_TRACE(fmt::format("{}; {}", fmt::join(*lines, "; "), to_json(plan)));
    const auto got = answer(plan, devices);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    EXPECT_LE(nmse(*got, *expected), kExactNmse);
    for (const auto& device : devices) EXPECT_GT(device->stats().tasks, 0) << device->info().name;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, OpenClAnswers,
                         ::testing::Combine(::testing::ValuesIn(kModels),
                                            ::testing::ValuesIn(kForms)),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param);
                           name =
                               name.substr(0, name.find('.')) + "_" + std::get<1>(param.param).name;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace troika
