// The whole engine against recorded values of an independent implementation: token ids,
// log-probabilities, greedy tokens, and the mean negative log-likelihood of a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/compare_logits.h"
#include "tests/repository.h"
#include "tests/sanitized.h"
#include "troika/device/cpu/kernels/kernels.h"
#include "troika/engine/engine.h"

namespace troika {
namespace {

using nlohmann::json;

constexpr const char* kDefaultModel = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
// Log-probabilities may differ by this much from the reference in float64.
constexpr double kLogprobBound = 0.02;
// Greedy text must be equal up to the first position whose choice was closer than this.
constexpr double kGreedyGap = 0.001;
constexpr double kHalfGreedyGap = 0.02;  // with a KV cache in half precision

// Under a sanitizer every n-th prompt of the default model is enough.
constexpr size_t kPromptStep = kSanitized ? 7 : 1;

std::string path(const std::string& in_repository) { return repository_path(in_repository); }

json read_json(const std::string& file) { return json::parse(std::ifstream(path(file))); }

int expect_greedy(const std::vector<model::TokenId>& got, const json& expected, double least_gap) {
  return troika::expect_greedy(got, expected["greedy"].get<std::vector<model::TokenId>>(),
                               expected["gap"].get<std::vector<double>>(), least_gap);
}

std::unique_ptr<engine::Engine> open(const std::string& file,
                                     const engine::EngineOptions& options) {
  auto model = model::Model::load(path(file));
  EXPECT_TRUE(model.has_value()) << model.error().message;
  auto engine = engine::Engine::create(std::move(*model), options);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  return std::move(*engine);
}

std::vector<model::TokenId> greedy(engine::Engine& engine,
                                   const std::vector<model::TokenId>& prompt, size_t count) {
  engine::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = static_cast<int64_t>(count);
  options.ignore_eos = true;
  auto session = engine.new_session();
  auto answer = (*session)->generate(prompt, options);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer.has_value() ? answer->tokens : std::vector<model::TokenId>{};
}

struct DefaultModelCase {
  const char* kernels;
  device::KvType kv_type;
};

class DefaultModel : public ::testing::TestWithParam<DefaultModelCase> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path(kDefaultModel))) {
      GTEST_SKIP() << kDefaultModel << " is not there: run scripts/bootstrap";
    }
    if (device::cpu::find_kernels(GetParam().kernels) == nullptr) {
      GTEST_SKIP() << "this machine does not run the " << GetParam().kernels << " kernels";
    }
    engine::EngineOptions options;
    options.kernels = GetParam().kernels;
    options.kv_type = GetParam().kv_type;
    options.threads = 2;
    options.context = 1024;
    options.max_sequences = 2;
    engine_ = open(kDefaultModel, options);
  }

  double greedy_gap() const {
    return GetParam().kv_type == device::KvType::kF32 ? kGreedyGap : kHalfGreedyGap;
  }

  void check_prompt(const json& expected) {
    const auto text = expected["text"].get<std::string>();
    SCOPED_TRACE(text.substr(0, 60));
    const auto ids = expected["ids"].get<std::vector<model::TokenId>>();
    EXPECT_EQ(engine_->model().tokenizer().encode(text, true), ids);

    auto session = engine_->new_session();
    engine::GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = 1;
    options.ignore_eos = true;
    options.logprobs = 50;
    const auto answer = (*session)->generate(ids, options);
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    std::map<model::TokenId, double> got;
    for (const engine::TokenLogprob& entry : answer->top_logprobs.at(0))
      got[entry.id] = entry.logprob;
    for (const json& entry : expected["top"]) {
      ASSERT_TRUE(got.contains(entry[0].get<int>()));
      EXPECT_NEAR(got[entry[0].get<int>()], entry[1].get<double>(), kLogprobBound);
    }
    expect_greedy(greedy(*engine_, ids, expected["greedy"].size()), expected, greedy_gap());
  }

  std::unique_ptr<engine::Engine> engine_;
};

TEST_P(DefaultModel, GivesTheRecordedTokensAndProbabilities) {
  const json recorded = read_json("tests/golden/smollm2-135m-instruct-q4_1.json");
  ASSERT_FALSE(recorded.empty());
  for (size_t i = 0; i < recorded.size(); i += kPromptStep) check_prompt(recorded[i]);
}

TEST_P(DefaultModel, GivesTheSameForEveryScriptShortAndLong) {
  const json recorded = read_json("tests/golden/smollm2-more.json");
  ASSERT_FALSE(recorded["cases"].empty());
  const json& cases = recorded["cases"];
  for (size_t i = 0; i < cases.size(); i += kPromptStep) check_prompt(cases[i]);
}

std::string case_name(const ::testing::TestParamInfo<DefaultModelCase>& info) {
  return std::string(info.param.kernels) +
         (info.param.kv_type == device::KvType::kF32 ? "_kv32" : "_kv16");
}

INSTANTIATE_TEST_SUITE_P(Kernels, DefaultModel,
                         ::testing::Values(DefaultModelCase{"avx512", device::KvType::kF32},
                                           DefaultModelCase{"avx512", device::KvType::kF16},
                                           DefaultModelCase{"avx2", device::KvType::kF32},
                                           DefaultModelCase{"avx2", device::KvType::kF16},
                                           DefaultModelCase{"neon", device::KvType::kF32}),
                         case_name);

TEST(DefaultModelText, HasTheRecordedLikelihood) {
  if (!std::filesystem::exists(path(kDefaultModel))) {
    GTEST_SKIP() << kDefaultModel << " is not there: run scripts/bootstrap";
  }
  engine::EngineOptions options;
  options.context = 4096;
  options.max_logit_rows = 128;
  options.threads = 2;
  auto engine = open(kDefaultModel, options);
  const json recorded = read_json("tests/golden/smollm2-more.json");
  const json& expected = recorded["nll"];
  if (kPromptStep > 1) GTEST_SKIP() << "2,000 tokens take minutes under a sanitizer";
  const auto ids = expected["ids"].get<std::vector<model::TokenId>>();
  const auto result = engine->score(ids);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(result->tokens, static_cast<int64_t>(ids.size()) - 1);
  const double mean = result->nll_sum / static_cast<double>(result->tokens);
  EXPECT_NEAR(mean, expected["mean_nll"].get<double>(), 1e-4);
}

// Small models of odd shapes, every weight type, on every kernel table that this machine runs.
class TinyModels : public ::testing::TestWithParam<std::string> {};

// The reference computes in float64 from the same dequantized weights: what is left is float32
// rounding through at most three layers, with logits of standard deviation 2.
constexpr double kTinyLogitBound = 2e-3;

TEST_P(TinyModels, GiveTheRecordedLogits) {
  const json recorded = read_json("tests/golden/tiny/" + GetParam() + ".json");
  for (const device::cpu::KernelTable* kernels : device::cpu::available_kernels()) {
    SCOPED_TRACE(kernels->name);
    engine::EngineOptions options;
    options.kernels = kernels->name;
    options.context = 256;
    options.max_logit_rows = 256;
    options.threads = 2;
    auto engine = open("tests/models/" + GetParam() + ".gguf", options);
    for (const json& expected : recorded["cases"]) {
      const auto ids = expected["ids"].get<std::vector<model::TokenId>>();
      if (expected.contains("text")) {
        EXPECT_EQ(engine->model().tokenizer().encode(expected["text"].get<std::string>(), true),
                  ids);
      }
      const runtime::SequenceId sequence = engine->kv_cache().new_sequence();
      const auto logits = engine->forward({{{sequence, ids, runtime::WantLogits::kAll}}});
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      for (const json& row : expected["rows"]) {
        const auto got = logits->row(row["position"].get<int64_t>());
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_NEAR(got[i], row["logits"][i].get<double>(), kTinyLogitBound)
              << "position " << row["position"] << ", token " << i;
        }
      }
      engine->kv_cache().release(sequence);
      expect_greedy(greedy(*engine, ids, expected["greedy"].size()), expected, kTinyLogitBound);
    }
    const auto ids = recorded["nll"]["ids"].get<std::vector<model::TokenId>>();
    const auto nll = engine->score(ids);
    ASSERT_TRUE(nll.has_value()) << nll.error().message;
    EXPECT_NEAR(nll->nll_sum / static_cast<double>(nll->tokens),
                recorded["nll"]["mean_nll"].get<double>(), 1e-3);
  }
}

std::vector<std::string> tiny_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path("tests/models"))) {
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string tiny_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, TinyModels, ::testing::ValuesIn(tiny_models()), tiny_name);

}  // namespace
}  // namespace troika
