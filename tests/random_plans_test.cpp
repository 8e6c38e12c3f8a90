// Random plans: any mix of devices, cuts, shares, chunks and orders gives the reference's logits.
//
// The reference is the `cpu` device alone. Exact devices (FP32) may differ by the order of sums;
// devices with FP16 inputs by the rounding of each product's inputs, 2^-11 of each value: both in
// the mean square of the logits, relative to theirs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

#include "tests/repository.h"
#include "troika/device/opencl/testing/eager_driver.h"
#include "troika/device/registry/registry.h"
#include "troika/plan/testing/random_plan.h"
#include "troika/runtime/executor.h"

namespace troika {
namespace {

using plan::testing::below;
using runtime::SequenceId;
using runtime::WantLogits;

// FP32 sums in another order: each product loses about 2^-24 of its terms, a few dozen in a row.
constexpr double kExactNmse = 1e-9;
// FP16 inputs: (2^-11)^2 / 3 for each product's two inputs, a few dozen in a row, and attention
// that sharpens differences.
constexpr double kHalfNmse = 1e-4;
constexpr int64_t kContext = 160;

constexpr const char* kModels[] = {
    "bf16-wide-heads.gguf", "f16-both-ropes.gguf", "f16-untied.gguf",      "f32-odd.gguf",
    "mixed-types.gguf",     "q4_0-small.gguf",     "q4_1-narrow-mlp.gguf", "q4_k_m-like.gguf",
    "q6_k-odd-heads.gguf",  "q8_0-one-head.gguf",
};

// PoCL compiles kernels when they first run.
constexpr Duration kPatience = std::chrono::seconds(100);

struct Case {
  const char* model;
  const char* devices;
  int plans;
  // Devices that can compute in memory of their own, on a driver that copies as early and as late
  // as it may.
  bool own_memory = false;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.model) + "_" + info.param.devices;
  if (info.param.own_memory) name += "_own";
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class RandomPlans : public ::testing::TestWithParam<Case> {
 protected:
  RandomPlans()
      : model_(*model::Model::load(repository_path("tests/models/") + GetParam().model)),
        graph_(*graph::build(model_)),
        // TROIKA_SEED repeats a run that failed.
        seed_(std::getenv("TROIKA_SEED") != nullptr
                  ? static_cast<uint32_t>(std::strtoul(std::getenv("TROIKA_SEED"), nullptr, 10))
                  : 20261129u),
        random_(seed_) {
    layout_.n_layers = graph_.n_layers;
    layout_.n_kv_heads = graph_.n_kv_heads;
    layout_.head_dim = graph_.head_dim;
    layout_.n_blocks = 16;
  }

  std::vector<model::TokenId> tokens(int64_t count) {
    std::vector<model::TokenId> all;
    for (int64_t i = 0; i < count; ++i) {
      all.push_back(static_cast<model::TokenId>(below(random_, graph_.n_vocab)));
    }
    return all;
  }

  // A prompt in two pieces beside another sequence, then a few single tokens: all logits.
  Result<std::vector<float>> answer(const plan::Plan& plan,
                                    std::span<const std::unique_ptr<device::Device>> devices,
                                    const std::vector<model::TokenId>& one,
                                    const std::vector<model::TokenId>& two, int64_t first_piece) {
    device::SharedPool pool;
    ASSIGN_OR_RETURN(runtime::KvCache cache, runtime::KvCache::create(layout_, kContext, pool));
    ASSIGN_OR_RETURN(const auto executor, runtime::Executor::create(
                                              graph_, plan, devices, pool, cache,
                                              {.max_logit_rows = kContext, .patience = kPatience}));
    const SequenceId a = cache.new_sequence();
    const SequenceId b = cache.new_sequence();
    const auto first = static_cast<size_t>(first_piece);
    std::vector<float> all;
    const auto run = [&](const runtime::Batch& batch) -> Status {
      ASSIGN_OR_RETURN(const runtime::Logits logits, executor->forward(batch));
      all.insert(all.end(), logits.data, logits.data + logits.rows * logits.n_vocab);
      return {};
    };
    const std::span<const model::TokenId> prompt = one;
    const size_t steps = 2;
    RETURN_IF_ERROR(run({{{a, prompt.first(first), WantLogits::kLast}}}));
    RETURN_IF_ERROR(
        run({{{a, prompt.subspan(first, prompt.size() - first - steps), WantLogits::kAll},
              {b, two, WantLogits::kLast}}}));
    for (size_t i = prompt.size() - steps; i < prompt.size(); ++i) {
      RETURN_IF_ERROR(run({{{a, prompt.subspan(i, 1), WantLogits::kLast}}}));
    }
    return all;
  }

  model::Model model_;
  graph::Graph graph_;
  uint32_t seed_;
  std::mt19937 random_;
  device::KvLayout layout_;
};

double nmse(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error / norm;
}

TEST_P(RandomPlans, GiveTheReferencesLogits) {
  device::OpenOptions portable;
  portable.threads = 1;
  portable.kernels = "portable";
  const auto reference = device::open_devices("cpu", portable);
  ASSERT_TRUE(reference.has_value());
  std::optional<device::opencl::EagerDriver> driver;
  device::OpenOptions options;
  options.own_memory = GetParam().own_memory;
  if (options.own_memory) driver.emplace();
  const auto devices = device::open_devices(GetParam().devices, options);
  if (!devices) GTEST_SKIP() << devices.error().message;
  std::vector<std::string> names;
  bool exact = true;
  for (const auto& device : *devices) {
    names.push_back(device->info().name);
    exact = exact && device->info().exact;
  }
  const double bound = exact ? kExactNmse : kHalfNmse;
  double worst = 0;
  for (int round = 0; round < GetParam().plans; ++round) {
    const int64_t length = 6 + below(random_, 70);
    const auto one = tokens(length);
    const auto two = tokens(1 + below(random_, 20));
    const int64_t first = 1 + below(random_, length - 4);
    const auto plan = plan::testing::random_plan(graph_, names, kContext, random_);
    SCOPED_TRACE(fmt::format("TROIKA_SEED={} round {}: {}", seed_, round, to_json(plan)));
    const auto alone = plan::single_device_plan(graph_, "cpu", kContext, "f32");
    const auto expected = answer(alone, *reference, one, two, first);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    const auto got = answer(plan, *devices, one, two, first);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    ASSERT_EQ(got->size(), expected->size());
    const double error = nmse(*got, *expected);
    ASSERT_LE(error, bound);
    worst = std::max(worst, error);
  }
  RecordProperty("worst_nmse", fmt::format("{:.2g}", worst));
  std::printf("seed %u: %d plans, worst NMSE %.2g of %.2g\n", seed_, GetParam().plans, worst,
              bound);
}

// TROIKA_PLANS bounds the number of each case, for builds in which they take long.
int plan_count(int wanted) {
  const char* const most = std::getenv("TROIKA_PLANS");
  return most == nullptr ? wanted : std::min(wanted, std::max(1, std::atoi(most)));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : kModels) {
    all.push_back({model, "cpu@0,cpu@0-1", plan_count(40)});
    all.push_back({model, "cpu@0,systolic@0", plan_count(40)});
    // Compiling takes most of the time.
    all.push_back({model, "cpu@0,openvino@0", 4});
    all.push_back({model, "cpu@0,openvino@0,systolic@0", 2});
    all.push_back({model, "cpu@0,opencl@0", plan_count(10)});
    all.push_back({model, "cpu@0,opencl@0", plan_count(20), true});
    all.push_back({model, "opencl@0,systolic@0", plan_count(10), true});
    all.push_back({model, "cpu@0,opencl@0,openvino@0", 2, true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, RandomPlans, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace troika
