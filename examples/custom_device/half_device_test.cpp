#include "examples/custom_device/half_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "tests/repository.h"
#include "troika/device/conformance/run_case.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/device_type.h"
#include "troika/plan/default_plan.h"
#include "troika/plan/testing/random_plan.h"
#include "troika/runtime/executor.h"

namespace troika::device::half {

extern const DeviceType kDeviceType;

namespace {

using conformance::Case;
using conformance::Outcome;
using conformance::Problem;
using conformance::ProblemBuilder;
using model::TensorType;
using ::testing::HasSubstr;

using Devices = std::vector<std::unique_ptr<Device>>;
using Tokens = std::vector<model::TokenId>;

// FP32 sums in another order.
constexpr double kExactNmse = 1e-9;
// Each product rounds both factors, (2^-11)^2 / 3 each; a few dozen products in a row.
constexpr double kHalfNmse = 1e-5;
constexpr int64_t kContext = 96;

class HalfConformance : public ::testing::TestWithParam<std::string> {};

TEST_P(HalfConformance, Within) {
  const auto device = std::move(*open({}));
  int ran = 0;
  for (const Case& c : conformance::cases_of(GetParam(), device->info())) {
    const Result<Outcome> outcome = run_case(*device, c);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_TRUE(outcome->not_run.empty()) << c.name << ": " << outcome->not_run;
    EXPECT_TRUE(outcome->passed()) << c.name << ": NMSE " << outcome->nmse << " at "
                                   << outcome->place << ", bound " << outcome->bound;
    ++ran;
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Groups, HalfConformance, ::testing::ValuesIn(conformance::groups()),
                         [](const auto& group) { return group.param; });

conformance::BatchPlan one_prompt(int64_t rows) {
  conformance::BatchPlan batch;
  batch.sequences = {{0, {rows}}};
  return batch;
}

// One product of three rows, whose only input or weight row a test may spoil.
Result<Outcome> run_product(Device& device, const std::function<void(Problem&)>& spoil) {
  Case c;
  c.group = "mat_mul";
  c.name = "spoiled";
  c.build = [&] {
    ProblemBuilder builder("spoiled");
    builder.output(builder.mat_mul(builder.input(64), TensorType::kF32, 8, 64));
    auto problem = builder.finish(one_prompt(3));
    spoil(*problem);
    return problem;
  };
  return run_case(device, c);
}

TEST(HalfDevice, IsLostWhenAResultIsNotFinite) {
  const auto device = std::move(*open({}));
  ASSERT_TRUE(run_product(*device, [](Problem&) {}).has_value());
  EXPECT_FALSE(device->lost());
  const auto outcome =
      run_product(*device, [](Problem& problem) { problem.passes[0].inputs[0][70] = 1e6f; });
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kDeviceFailed);
  EXPECT_THAT(outcome.error().message, HasSubstr("NaN or infinite values"));
  EXPECT_THAT(outcome.error().message, HasSubstr("row 1"));
  EXPECT_TRUE(device->lost());
  EXPECT_FALSE(device->stuck());
}

TEST(HalfDevice, RefusesWeightsBeyondFp16) {
  const auto device = std::move(*open({}));
  const auto outcome = run_product(*device, [](Problem& problem) {
    const float large = 1e6f;
    // What is stored may begin anywhere in its memory.
    const auto begin = problem.weights[0].data - problem.stored[0].data();
    std::memcpy(problem.stored[0].data() + begin + 2 * 64 * sizeof(float), &large, sizeof large);
  });
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(outcome.error().message, HasSubstr("1e+06 in row 2"));
}

TEST(HalfDevice, RefusesCoresItCannotUse) {
  HalfOptions options;
  options.cores = {0, 1};
  const auto device = open(options);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, ErrorCode::kInvalidArgument);
}

TEST(HalfDevice, IsOpenedByItsNameAlone) {
  const auto opened = [](const DeviceSpec& spec) {
    return kDeviceType.open({spec, {0}, {}, system_clock(), {}});
  };
  EXPECT_TRUE(opened({"half", "half", "", {}, {}}).has_value());
  const auto refused = opened({"half:x", "half", "x", {}, {}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("\"half:x\" has no instance \"x\""));
}

TEST(HalfDevice, SharesWeightsBetweenLengthsAndGivesThemBack) {
  const auto device = std::move(*open({}));
  ProblemBuilder builder("shared");
  builder.output(builder.mat_mul(builder.input(640), TensorType::kQ4_0, 320, 640));
  const auto problem = builder.finish(one_prompt(1));
  constexpr int64_t kWeightBytes = 320 * 640 * 2;
  const auto compile = [&](int64_t rows) {
    problem->program.max_rows = rows;
    return device->compile(problem->program);
  };
  auto longer = compile(32);
  ASSERT_TRUE(longer.has_value()) << longer.error().message;
  const int64_t one = device->stats().own_bytes;
  EXPECT_GE(one, kWeightBytes);
  auto shorter = compile(1);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(device->stats().own_bytes, one);
  longer->reset();
  shorter->reset();
  EXPECT_EQ(device->stats().own_bytes, one - kWeightBytes);
  const auto none = compile(33);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("1, 32, 128, 512"));
}

double nmse(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double truth = expected[i];
    error += (got[i] - truth) * (got[i] - truth);
    norm += truth * truth;
  }
  return error / norm;
}

class WithCpu : public ::testing::TestWithParam<const char*> {
 protected:
  WithCpu()
      : model_(*model::Model::load(repository_path("tests/models/") + GetParam())),
        graph_(*graph::build(model_)) {
    cpu::CpuOptions options;
    options.threads = 1;
    alone_.push_back(std::move(*cpu::open(options)));
    both_.push_back(std::move(*cpu::open(options)));
    both_.push_back(std::move(*open({})));
    for (int64_t i = 0; i < 53; ++i) {
      tokens_.push_back(static_cast<model::TokenId>((i * 37 + 11) % graph_.n_vocab));
    }
  }

  // Logits of a prompt in one pass and of a dozen tokens that follow one by one: what an answer
  // takes, with the same tokens whatever comes out.
  Result<std::vector<float>> answer(const plan::Plan& plan, const Devices& devices) const {
    KvLayout layout;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = kContext / kKvBlockTokens;
    SharedPool pool;
    ASSIGN_OR_RETURN(runtime::KvCache cache, runtime::KvCache::create(layout, kContext, pool));
    ASSIGN_OR_RETURN(const auto executor, runtime::Executor::create(graph_, plan, devices, pool,
                                                                    cache, {.max_logit_rows = 1}));
    const runtime::SequenceId sequence = cache.new_sequence();
    const std::span<const model::TokenId> all = tokens_;
    constexpr size_t kAnswer = 12;
    std::vector<float> logits;
    for (size_t at = 0; at < all.size();) {
      const size_t count = at == 0 ? all.size() - kAnswer : 1;
      ASSIGN_OR_RETURN(
          const runtime::Logits step,
          executor->forward({{{sequence, all.subspan(at, count), runtime::WantLogits::kLast}}}));
      logits.insert(logits.end(), step.data, step.data + step.n_vocab);
      at += count;
    }
    return logits;
  }

  Result<std::vector<float>> reference() const {
    return answer(plan::single_device_plan(graph_, "cpu", kContext, "f32"), alone_);
  }

  model::Model model_;
  graph::Graph graph_;
  Tokens tokens_;
  Devices alone_;
  Devices both_;
};

TEST_P(WithCpu, EveryCutGivesTheReferencesLogits) {
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const std::vector<DeviceInfo> infos = {both_[0]->info(), both_[1]->info()};
  const std::vector<plan::DeviceRates> rates = {{1, 1}, {1, 1}};
  for (const char* rule : {"paired:50/50", "weight-centric:50/50", "k-cut:50/50", "hybrid:50/50",
                           "prefill=activation-centric:60/40,decode=paired:70/30"}) {
    SCOPED_TRACE(rule);
    plan::DefaultPlanOptions options;
    options.max_rows = kContext;
    options.split = *plan::parse_split(rule, infos.size());
    const int64_t before = both_[1]->stats().tasks;
    const auto got = answer(plan::default_plan(graph_, infos, rates, options), both_);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    ASSERT_EQ(got->size(), expected->size());
    EXPECT_LE(nmse(*got, *expected), kHalfNmse);
    EXPECT_GT(both_[1]->stats().tasks, before);
    EXPECT_GT(nmse(*got, *expected), kExactNmse) << "FP16 leaves a trace";
  }
}

TEST_P(WithCpu, RandomPlansGiveTheReferencesLogits) {
  const auto expected = reference();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    const auto plan = plan::testing::random_plan(graph_, {"cpu", "half"}, kContext, random);
    SCOPED_TRACE(to_json(plan));
    const auto got = answer(plan, both_);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    ASSERT_EQ(got->size(), expected->size());
    EXPECT_LE(nmse(*got, *expected), kHalfNmse);
  }
  EXPECT_EQ(both_[1]->stats().copies, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, WithCpu,
                         ::testing::Values("q4_0-small.gguf", "f32-odd.gguf", "mixed-types.gguf"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace troika::device::half
