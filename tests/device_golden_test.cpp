// Answers of the default model and of a small one by every device, and by devices together, against
// the values that an independent implementation recorded: log-probabilities, greedy tokens,
// likelihood of a text. A sanitizer looks at the code and not at the numbers: the small one is
// enough for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "examples/custom_device/half_device.h"
#include "tests/compare_logits.h"
#include "tests/repository.h"
#include "tests/sanitized.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/opencl/opencl_device.h"
#include "troika/device/opencl/testing/eager_driver.h"
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

constexpr const char* kDefaultModel = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr const char* kSmallModel = "tests/models/q4_1-like-default.gguf";
constexpr int64_t kPassRows = 256;
constexpr int64_t kLogitRows = 128;
constexpr int64_t kContext = 2112;

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

// In memory of its own it copies what others read and write.
template <bool own_memory>
Result<std::unique_ptr<device::Device>> open_opencl() {
  device::opencl::OpenClOptions options;
  options.own_memory = own_memory;
  return device::opencl::open(options);
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
      {"opencl", {open_opencl<false>}, kExact, 2},
      {"cpu_opencl", {open_cpu<false>, open_opencl<false>}, kExact, 2},
      {"cpu_opencl_own", {open_cpu<false>, open_opencl<true>}, kExact, 2},
      {"opencl_own_openvino", {open_opencl<true>, open_openvino<false>}, kExact, 1},
      {"opencl_own_systolic", {open_opencl<true>, open_systolic}, kHalf, 2},
      {"openvino_int8", {open_openvino<true>}, kInt8, 0, true},
  };
}

json read_json(const std::string& file) {
  return json::parse(std::ifstream(repository_path(file)));
}

// What was recorded of one prompt.
struct Recorded {
  std::string text;
  Tokens ids;
  std::vector<std::pair<model::TokenId, double>> top;  // log-probabilities after the prompt
  Tokens greedy;
  std::vector<double> gaps;
};

Recorded recorded(const json& one) {
  Recorded result{one.contains("text") ? one["text"].get<std::string>() : "random tokens",
                  one["ids"].get<Tokens>(),
                  {},
                  one["greedy"].get<Tokens>(),
                  one["gap"].get<std::vector<double>>()};
  if (one.contains("top")) {
    for (const json& entry : one["top"]) {
      result.top.emplace_back(entry[0].get<model::TokenId>(), entry[1].get<double>());
    }
  } else {
    result.top = top_ten(one["rows"].back()["logits"].get<std::vector<float>>());
  }
  return result;
}

// A model with what was recorded of it.
struct Recording {
  const char* name;
  const char* model;
  std::vector<json> (*cases)();
  json (*text)();
  bool few;  // cases: all of them are compared
};

std::vector<json> default_cases() {
  std::vector<json> all = read_json("tests/golden/smollm2-135m-instruct-q4_1.json");
  const json more = read_json("tests/golden/smollm2-more.json");
  all.insert(all.end(), more["cases"].begin(), more["cases"].end());
  return all;
}

json default_text() { return read_json("tests/golden/smollm2-more.json")["nll"]; }

std::vector<json> small_cases() {
  return read_json("tests/golden/tiny/q4_1-like-default.json")["cases"];
}

json small_text() { return read_json("tests/golden/tiny/q4_1-like-default.json")["nll"]; }

std::ostream& operator<<(std::ostream& out, const Recording& recording) {
  return out << recording.name;
}

constexpr Recording kRecordings[] = {
    {"default_model", kDefaultModel, default_cases, default_text, false},
    {"small_model", kSmallModel, small_cases, small_text, true},
};

class DeviceGolden : public ::testing::TestWithParam<std::tuple<Recording, Subject>> {
 protected:
  static const Recording& recording() { return std::get<0>(GetParam()); }
  static const Subject& subject() { return std::get<1>(GetParam()); }

  void SetUp() override {
    if (kSanitized && !recording().few) {
      GTEST_SKIP() << "the default model takes minutes under a sanitizer";
    }
    const std::string file = repository_path(recording().model);
    if (!std::filesystem::exists(file)) {
      GTEST_SKIP() << file << " is not there: run scripts/bootstrap";
    }
    std::vector<device::DeviceInfo> infos;
    for (const Open open : subject().devices) {
      auto device = open();
      if (!device) GTEST_SKIP() << device.error().message;
      infos.push_back((*device)->info());
      devices_.push_back(std::move(*device));
    }
    auto model = model::Model::load(file);
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
  model::TokenId first_token(std::span<const float> logits, const Recorded& expected) {
    const std::vector<double> logprobs = log_softmax(logits);
    for (const auto& [id, logprob] : expected.top) {
      const double error = std::abs(logprobs[static_cast<size_t>(id)] - logprob);
      EXPECT_LE(error, subject().bounds.logprob) << "of token " << id;
      worst_ = std::max(worst_, error);
    }
    return likeliest(logits);
  }

  // Answers the prompts, all their steps together.
  void check(std::span<const Recorded> expected) {
    std::vector<SequenceId> sequences;
    std::vector<Tokens> answers;
    size_t steps = 0;
    for (const Recorded& one : expected) {
      SCOPED_TRACE(one.text.substr(0, 60));
      sequences.push_back(cache_->new_sequence());
      const auto last = all_but_last(sequences.back(), one.ids);
      const auto logits = executor_->forward({{{sequences.back(), last, WantLogits::kLast}}});
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      answers.push_back({first_token(logits->row(0), one)});
      steps = std::max(steps, one.greedy.size());
    }
    for (size_t step = 1; step < steps; ++step) {
      runtime::Batch batch;
      for (size_t i = 0; i < sequences.size(); ++i) {
        batch.items.push_back({sequences[i], {&answers[i].back(), 1}, WantLogits::kLast});
      }
      const auto logits = executor_->forward(batch);
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      for (size_t i = 0; i < sequences.size(); ++i) {
        answers[i].push_back(likeliest(logits->row(static_cast<int64_t>(i))));
      }
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      SCOPED_TRACE(expected[i].text.substr(0, 60));
      cache_->release(sequences[i]);
      same_ += expect_greedy(answers[i], expected[i].greedy, expected[i].gaps,
                             subject().bounds.greedy_gap);
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

  device::opencl::EagerDriver driver_;  // copies as early and as late as it may
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
  if (subject().prompts == 0) GTEST_SKIP() << "only the text is of interest";
  const std::vector<json> cases = recording().cases();
  const size_t count = recording().few ? cases.size() : subject().prompts;
  // So many of them, spread over all.
  std::vector<Recorded> all;
  for (size_t i = 0; i < count; ++i) all.push_back(recorded(cases[i * cases.size() / count]));
  // A conversation alone, step by step, and many at once.
  check(std::span(all).first(1));
  check(std::span(all).subspan(1));
  EXPECT_GT(same_, 0);
  fmt::print("    {}: {} prompts, {} greedy tokens as recorded, log-probabilities within {:.2g}\n",
             subject().name, all.size(), same_, worst_);
}

TEST_P(DeviceGolden, GivesTheTextItsRecordedLikelihood) {
  if (!recording().few && !subject().text) {
    GTEST_SKIP() << "2,000 tokens take minutes on this device";
  }
  const json expected = recording().text();
  const auto ids = expected["ids"].get<Tokens>();
  ASSERT_GE(ids.size(), recording().few ? 100u : 2000u);
  const double recorded = expected["mean_nll"].get<double>();
  const double got = mean_nll(ids);
  EXPECT_NEAR(got, recorded, subject().bounds.nll * recorded);
  fmt::print("    {}: mean_nll {:.6f}, {:+.4f} % of the recorded {:.6f}\n", subject().name, got,
             100 * (got / recorded - 1), recorded);
}

INSTANTIATE_TEST_SUITE_P(Subjects, DeviceGolden,
                         ::testing::Combine(::testing::ValuesIn(kRecordings),
                                            ::testing::ValuesIn(subjects())),
                         [](const auto& tested) {
                           return std::string(std::get<1>(tested.param).name) + "_" +
                                  std::get<0>(tested.param).name;
                         });

}  // namespace
}  // namespace troika
