// Answers of the default model by every device, and by devices together, against the values that an
// independent implementation recorded: log-probabilities, greedy tokens, likelihood of a text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "examples/custom_device/half_device.h"
#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/openvino/openvino_device.h"
#include "troika/device/systolic/systolic_device.h"
#include "troika/plan/default_plan.h"
#include "troika/runtime/executor.h"

namespace troika {
namespace {

using nlohmann::json;
using Devices = std::vector<std::unique_ptr<device::Device>>;
using Tokens = std::vector<model::TokenId>;
using runtime::SequenceId;
using runtime::WantLogits;

constexpr const char* kModel = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr int64_t kPassRows = 256;
constexpr int64_t kLogitRows = 128;
constexpr int64_t kContext = 2112;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROIKA_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TROIKA_SANITIZED 1
#endif
#endif
#ifdef TROIKA_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// How far from the reference, which computes in float64.
struct Bounds {
  double logprob = 0;     // of each of the ten likeliest tokens
  double greedy_gap = 0;  // text is the same up to the first choice closer than this
  double nll = 0;         // of the mean over the text, as a part of it
};
// FP32 sums in any order.
constexpr Bounds kExact{0.002, 0.001, 1e-5};
// Both inputs of each product in FP16.
constexpr Bounds kHalf{0.02, 0.02, 1e-3};
// Inputs of products in 8 bits, which moves logits by several tenths: for comparison.
constexpr Bounds kInt8{2, 2, 0.02};

using Open = Result<std::unique_ptr<device::Device>> (*)();

template <bool second>
Result<std::unique_ptr<device::Device>> open_cpu() {
  device::cpu::CpuOptions options;
  options.name = second ? "cpu@1" : "cpu@0";  // not pinned: other tests run at the same time
  return device::cpu::open(options);
}

Result<std::unique_ptr<device::Device>> open_systolic() { return device::systolic::open({}); }

Result<std::unique_ptr<device::Device>> open_half() { return device::half::open({}); }

// OpenVINO's CPU plug-in rounds inputs to 8 bits only where there are instructions for it.
bool has_int8_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

template <bool int8>
Result<std::unique_ptr<device::Device>> open_openvino() {
  if (int8 && !has_int8_products()) {
    return make_error(ErrorCode::kUnsupported,
                      "this processor has no AVX512-VNNI: OpenVINO would keep inputs in FP32");
  }
  device::openvino::OpenVinoOptions options;
  options.plugin = device::openvino::Plugin::kCpu;
  options.int8_activations = int8;
  return device::openvino::open(options);
}

// Devices that answer together, in equal parts.
struct Subject {
  const char* name;
  std::vector<Open> devices;
  Bounds bounds;
  size_t prompts = 0;  // of those recorded, spread over all of them
  bool text = false;   // also over 2,000 tokens
};

std::ostream& operator<<(std::ostream& out, const Subject& subject) { return out << subject.name; }

std::vector<Subject> subjects() {
  return {
      {"cpu", {open_cpu<false>}, kExact, 9},
      {"cpu_cpu", {open_cpu<false>, open_cpu<true>}, kExact, 14},
      {"openvino", {open_openvino<false>}, kExact, 5, true},
      {"cpu_openvino", {open_cpu<false>, open_openvino<false>}, kExact, 3},
      {"systolic", {open_systolic}, kHalf, 9, true},
      {"cpu_systolic", {open_cpu<false>, open_systolic}, kHalf, 14, true},
      {"half", {open_half}, kHalf, 1},
      {"openvino_int8", {open_openvino<true>}, kInt8, 0, true},
  };
}

std::string path(const std::string& in_repository) { return repository_path(in_repository); }

json read_json(const std::string& file) { return json::parse(std::ifstream(path(file))); }

// So many of the recorded prompts, of both files.
std::vector<json> prompts(size_t count) {
  std::vector<json> all = read_json("tests/golden/smollm2-135m-instruct-q4_1.json");
  const json more = read_json("tests/golden/smollm2-more.json");
  all.insert(all.end(), more["cases"].begin(), more["cases"].end());
  std::vector<json> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(all[i * all.size() / count]);
  return chosen;
}

// Log-probabilities from logits.
std::vector<double> log_softmax(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - most - std::log(sum));
  return result;
}

class DeviceGolden : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path(kModel))) {
      GTEST_SKIP() << kModel << " is not there: run scripts/bootstrap";
    }
    std::vector<device::DeviceInfo> infos;
    for (const Open open : GetParam().devices) {
      auto device = open();
      if (!device) GTEST_SKIP() << device.error().message;
      infos.push_back((*device)->info());
      devices_.push_back(std::move(*device));
    }
    auto model = model::Model::load(path(kModel));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    model_.emplace(std::move(*model));
    auto graph = graph::build(*model_);
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    graph_.emplace(std::move(*graph));
    device::KvLayout layout;
    layout.n_layers = graph_->n_layers;
    layout.n_kv_heads = graph_->n_kv_heads;
    layout.head_dim = graph_->head_dim;
    layout.n_blocks = kBlocks;
    auto cache = runtime::KvCache::create(layout, kContext, pool_);
    ASSERT_TRUE(cache.has_value()) << cache.error().message;
    cache_.emplace(std::move(*cache));
    const std::vector<plan::DeviceRates> rates(infos.size(), {1, 1});
    plan::DefaultPlanOptions options;
    options.max_rows = kPassRows;
    const plan::Plan plan = plan::default_plan(*graph_, infos, rates, options);
    auto executor = runtime::Executor::create(*graph_, plan, devices_, pool_, *cache_,
                                              {.max_logit_rows = kLogitRows});
    ASSERT_TRUE(executor.has_value()) << executor.error().message;
    executor_ = std::move(*executor);
  }

  // Every device did something.
  void TearDown() override {
    if (executor_ == nullptr || IsSkipped()) return;
    for (const runtime::DeviceWork& work : executor_->device_work()) EXPECT_GT(work.macs, 0);
  }

  // Computes all but the last piece of a prompt, which it gives.
  std::span<const model::TokenId> all_but_last(SequenceId sequence, const Tokens& prompt) {
    std::span<const model::TokenId> rest = prompt;
    while (static_cast<int64_t>(rest.size()) > kPassRows) {
      const auto done =
          executor_->forward({{{sequence, rest.first(kPassRows), WantLogits::kNone}}});
      EXPECT_TRUE(done.has_value()) << done.error().message;
      rest = rest.subspan(kPassRows);
    }
    return rest;
  }

  // The prompt's next token, after comparing its likeliest ones with the recorded ones.
  model::TokenId first_token(std::span<const float> logits, const json& expected) {
    const std::vector<double> logprobs = log_softmax(logits);
    for (const json& entry : expected["top"]) {
      const double error = std::abs(logprobs[entry[0].get<size_t>()] - entry[1].get<double>());
      EXPECT_LE(error, GetParam().bounds.logprob) << "of token " << entry[0];
      worst_ = std::max(worst_, error);
    }
    return best(logits);
  }

  static model::TokenId best(std::span<const float> logits) {
    return static_cast<model::TokenId>(std::max_element(logits.begin(), logits.end()) -
                                       logits.begin());
  }

  // Answers the prompts, all their steps together.
  void check(std::span<const json> expected) {
    std::vector<SequenceId> sequences;
    std::vector<Tokens> answers;
    size_t steps = 0;
    for (const json& one : expected) {
      SCOPED_TRACE(one["text"].get<std::string>().substr(0, 60));
      const auto prompt = one["ids"].get<Tokens>();
      sequences.push_back(cache_->new_sequence());
      const auto last = all_but_last(sequences.back(), prompt);
      const auto logits = executor_->forward({{{sequences.back(), last, WantLogits::kLast}}});
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      answers.push_back({first_token(logits->row(0), one)});
      steps = std::max(steps, one["greedy"].size());
    }
    for (size_t step = 1; step < steps; ++step) {
      runtime::Batch batch;
      for (size_t i = 0; i < sequences.size(); ++i) {
        batch.items.push_back({sequences[i], {&answers[i].back(), 1}, WantLogits::kLast});
      }
      const auto logits = executor_->forward(batch);
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      for (size_t i = 0; i < sequences.size(); ++i) {
        answers[i].push_back(best(logits->row(static_cast<int64_t>(i))));
      }
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      cache_->release(sequences[i]);
      check_greedy(answers[i], expected[i]);
    }
  }

  void check_greedy(const Tokens& got, const json& expected) {
    SCOPED_TRACE(expected["text"].get<std::string>().substr(0, 60));
    for (size_t i = 0; i < expected["greedy"].size(); ++i) {
      if (expected["gap"][i].get<double>() < GetParam().bounds.greedy_gap) return;
      ASSERT_EQ(got[i], expected["greedy"][i].get<int>()) << "at generated token " << i;
      ++same_;
    }
  }

  // Of `ids` but the first.
  double mean_nll(const Tokens& ids) {
    const SequenceId sequence = cache_->new_sequence();
    const std::span<const model::TokenId> all = ids;
    double sum = 0;
    for (size_t at = 0; at < all.size(); at += kLogitRows) {
      const auto piece = all.subspan(at, std::min<size_t>(kLogitRows, all.size() - at));
      const auto logits = executor_->forward({{{sequence, piece, WantLogits::kAll}}});
      EXPECT_TRUE(logits.has_value()) << logits.error().message;
      if (!logits) return sum;
      for (size_t i = 0; i < piece.size() && at + i + 1 < all.size(); ++i) {
        const auto logprobs = log_softmax(logits->row(static_cast<int64_t>(i)));
        sum -= logprobs[static_cast<size_t>(all[at + i + 1])];
      }
    }
    cache_->release(sequence);
    return sum / static_cast<double>(all.size() - 1);
  }

  static constexpr int64_t kBlocks = 160;  // for all prompts and their answers, or for the text

  std::optional<model::Model> model_;
  std::optional<graph::Graph> graph_;
  Devices devices_;
  device::SharedPool pool_;
  std::optional<runtime::KvCache> cache_;
  std::unique_ptr<runtime::Executor> executor_;
  double worst_ = 0;  // error of a log-probability
  int same_ = 0;      // greedy tokens compared
};

TEST_P(DeviceGolden, GivesTheRecordedTokensAndProbabilities) {
  if (GetParam().prompts == 0) GTEST_SKIP() << "only the text is of interest";
  // A sanitizer looks at the code, not at the numbers.
  const std::vector<json> all = prompts(std::min<size_t>(GetParam().prompts, kSanitized ? 2 : 100));
  // A conversation alone, step by step, and many at once.
  check(std::span(all).first(1));
  check(std::span(all).subspan(1));
  EXPECT_GT(same_, 0);
  fmt::print("    {}: {} prompts, {} greedy tokens as recorded, log-probabilities within {:.2g}\n",
             GetParam().name, all.size(), same_, worst_);
}

TEST_P(DeviceGolden, GivesTheTextItsRecordedLikelihood) {
  if (kSanitized) GTEST_SKIP() << "2,000 tokens take minutes under a sanitizer";
  if (!GetParam().text) GTEST_SKIP() << "2,000 tokens take minutes on this device";
  const json expected = read_json("tests/golden/smollm2-more.json")["nll"];
  const auto ids = expected["ids"].get<Tokens>();
  ASSERT_GE(ids.size(), 2000u);
  const double recorded = expected["mean_nll"].get<double>();
  const double got = mean_nll(ids);
  EXPECT_NEAR(got, recorded, GetParam().bounds.nll * recorded);
  fmt::print("    {}: mean_nll {:.6f}, {:+.4f} % of the recorded {:.6f}\n", GetParam().name, got,
             100 * (got / recorded - 1), recorded);
}

INSTANTIATE_TEST_SUITE_P(Subjects, DeviceGolden, ::testing::ValuesIn(subjects()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace troika
