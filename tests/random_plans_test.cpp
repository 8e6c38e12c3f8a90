// Random plans: any mix of devices, cuts, shares, chunks and orders gives the reference's logits,
// the recorded greedy tokens, and the log-probabilities of the reference.
//
// The reference is the `cpu` device alone. Exact devices (FP32) may differ by the order of sums;
// devices with FP16 inputs by the rounding of each product's inputs, 2^-11 of each value: both in
// the mean square of the logits, relative to theirs. Tokens are those that an independent
// implementation recorded.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "tests/compare_logits.h"
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

// How far from the reference.
struct Bounds {
  double nmse = 0;        // of all logits
  double logprob = 0;     // of the ten likeliest tokens, at every position
  double greedy_gap = 0;  // tokens are the same up to the first choice closer than this
};
// FP32 sums in another order: each product loses about 2^-24 of its terms, a few dozen in a row.
constexpr Bounds kExact{1e-9, 0.001, 0.001};
// FP16 inputs: (2^-11)^2 / 3 for what each product multiplies, a few dozen in a row, the more where
// scores of attention are large.
constexpr Bounds kHalf{1e-5, 0.02, 0.02};
constexpr int64_t kContext = 160;

constexpr const char* kModels[] = {
    "bf16-wide-heads.gguf", "f16-both-ropes.gguf", "f16-untied.gguf",      "f32-odd.gguf",
    "mixed-types.gguf",     "q4_0-small.gguf",     "q4_1-narrow-mlp.gguf", "q4_k_m-like.gguf",
    "q6_k-odd-heads.gguf",  "q8_0-one-head.gguf",
};

// PoCL compiles kernels when they first run.
constexpr Duration kPatience = std::chrono::seconds(100);
using Tokens = std::vector<model::TokenId>;

// A prompt with its greedy answer, and how far the second choice was behind each token of it.
struct Recorded {
  Tokens ids;
  Tokens greedy;
  std::vector<double> gaps;
};

std::vector<Recorded> recorded(const std::string& model) {
  const std::string stem = model.substr(0, model.find('.'));
  std::vector<Recorded> all;
  const auto file =
      nlohmann::json::parse(std::ifstream(repository_path("tests/golden/tiny/" + stem + ".json")));
  for (const auto& one : file["cases"]) {
    all.push_back({one["ids"].get<Tokens>(), one["greedy"].get<Tokens>(),
                   one["gap"].get<std::vector<double>>()});
  }
  return all;
}

struct Case {
  const char* model;
  const char* devices;
  int plans;
  // Devices that can compute in memory of their own, on a driver that copies as early and as late
  // as it may.
  bool own_memory = false;
};

std::ostream& operator<<(std::ostream& out, const Case& tested) {
  return out << tested.model << " on " << tested.devices;
}

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

  Tokens tokens(int64_t count) {
    Tokens all;
    for (int64_t i = 0; i < count; ++i) {
      all.push_back(static_cast<model::TokenId>(below(random_, graph_.n_vocab)));
    }
    return all;
  }

  // What is computed of two sequences: all rows of logits, and the answer of the second.
  struct Answers {
    std::vector<std::vector<float>> rows;
    Tokens greedy;
  };

  // A prompt in two pieces, the second beside a recorded one, then the recorded answer token by
  // token. Each of its tokens is what is fed, whatever the device chose.
  Result<Answers> answer(const plan::Plan& plan,
                         std::span<const std::unique_ptr<device::Device>> devices,
                         const Tokens& free_prompt, const Recorded& other, int64_t first_piece) {
    device::SharedPool pool;
    ASSIGN_OR_RETURN(runtime::KvCache cache, runtime::KvCache::create(layout_, kContext, pool));
    ASSIGN_OR_RETURN(const auto executor, runtime::Executor::create(
                                              graph_, plan, devices, pool, cache,
                                              {.max_logit_rows = kContext, .patience = kPatience}));
    const SequenceId a = cache.new_sequence();
    const SequenceId b = cache.new_sequence();
    Answers answers;
    const auto run = [&](const runtime::Batch& batch) -> Status {
      ASSIGN_OR_RETURN(const runtime::Logits logits, executor->forward(batch));
      for (int64_t i = 0; i < logits.rows; ++i) {
        answers.rows.emplace_back(logits.row(i).begin(), logits.row(i).end());
      }
      return {};
    };
    const std::span<const model::TokenId> prompt = free_prompt;
    const auto first = static_cast<size_t>(first_piece);
    RETURN_IF_ERROR(run({{{a, prompt.first(first), WantLogits::kLast}}}));
    RETURN_IF_ERROR(
        run({{{a, prompt.subspan(first), WantLogits::kAll}, {b, other.ids, WantLogits::kLast}}}));
    for (const model::TokenId& token : other.greedy) {
      answers.greedy.push_back(likeliest(answers.rows.back()));
      if (answers.greedy.size() == other.greedy.size()) break;
      RETURN_IF_ERROR(run({{{b, {&token, 1}, WantLogits::kLast}}}));
    }
    return answers;
  }

  // Of all rows; and the log-probabilities of each.
  void compare(const Answers& got, const Answers& expected, const Bounds& bounds) {
    ASSERT_EQ(got.rows.size(), expected.rows.size());
    std::vector<float> all_got;
    std::vector<float> all_expected;
    for (size_t i = 0; i < got.rows.size(); ++i) {
      const double error = top_error(got.rows[i], expected.rows[i]);
      ASSERT_LE(error, bounds.logprob) << "row " << i;
      ++positions_;
      worst_logprob_ = std::max(worst_logprob_, error);
      all_got.insert(all_got.end(), got.rows[i].begin(), got.rows[i].end());
      all_expected.insert(all_expected.end(), expected.rows[i].begin(), expected.rows[i].end());
    }
    const double error = nmse(all_got, all_expected);
    ASSERT_LE(error, bounds.nmse);
    worst_nmse_ = std::max(worst_nmse_, error);
  }

  model::Model model_;
  graph::Graph graph_;
  uint32_t seed_;
  std::mt19937 random_;
  device::KvLayout layout_;
  double worst_nmse_ = 0;
  double worst_logprob_ = 0;
  int positions_ = 0;
};

TEST_P(RandomPlans, GiveTheReferencesLogitsAndTheRecordedTokens) {
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
  const Bounds& bounds = exact ? kExact : kHalf;
  const std::vector<Recorded> cases = recorded(GetParam().model);
  const auto alone = plan::single_device_plan(graph_, "cpu", kContext, "f32");
  int same = 0;
  for (int round = 0; round < GetParam().plans; ++round) {
    const int64_t length = 6 + below(random_, 70);
    const auto prompt = tokens(length);
    const Recorded& other =
        cases[static_cast<size_t>(below(random_, static_cast<int64_t>(cases.size())))];
    const int64_t first = 1 + below(random_, length - 4);
    const auto plan = plan::testing::random_plan(graph_, names, kContext, random_);
    SCOPED_TRACE(fmt::format("TROIKA_SEED={} round {}: {}", seed_, round, to_json(plan)));
    const auto expected = answer(alone, *reference, prompt, other, first);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    const auto got = answer(plan, *devices, prompt, other, first);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    compare(*got, *expected, bounds);
    same += expect_greedy(got->greedy, other.greedy, other.gaps, bounds.greedy_gap);
    if (HasFailure()) return;
  }
  EXPECT_GT(same, 0);
  std::printf(
      "seed %u: %d plans, worst NMSE %.2g of %.2g, log-probabilities within %.2g of %.2g at %d "
      "positions, %d greedy tokens as recorded\n",
      seed_, GetParam().plans, worst_nmse_, bounds.nmse, worst_logprob_, bounds.logprob, positions_,
      same);
}

// TROIKA_PLANS bounds the number of each case, for builds in which they take long.
int plan_count(int wanted) {
  const char* const most = std::getenv("TROIKA_PLANS");
  return most == nullptr ? wanted : std::min(wanted, std::max(1, std::atoi(most)));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : kModels) {
    all.push_back({model, "cpu@0,cpu@0-1", plan_count(22)});
    all.push_back({model, "cpu@0,systolic@0", plan_count(22)});
    all.push_back({model, "cpu@0,systolic@0,cpu@0-1", plan_count(8)});
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
