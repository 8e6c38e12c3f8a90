// Whole models as one program of the device, held against the `cpu` device.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/device/systolic/systolic_device.h"
#include "troika/graph/graph.h"

namespace troika::device::systolic {
namespace {

// Each product adds at most 1.6e-7 (see array_test.cpp), a layer has seven, and attention
// multiplies what it is given by the size of its scores.
constexpr double kNmseBound = 1e-5;
// What log-probabilities of a trained model may differ by, among the likeliest.
constexpr double kLogprobBound = 0.02;
constexpr size_t kLikeliest = 50;
constexpr int64_t kContext = 128;

// A sequence on one device: a prompt, then one token at a time, each pass a single task.
class Runner {
 public:
  Runner(const graph::Graph& graph, Device& device, int64_t prompt_rows)
      : graph_(graph), device_(device) {
    for (const graph::Tensor& tensor : graph.tensors) {
      memory_.emplace_back(static_cast<size_t>(prompt_rows * tensor.width));
      views_.push_back({reinterpret_cast<std::byte*>(memory_.back().data()),
                        tensor.width * int64_t{sizeof(float)}});
    }
    layout_.n_layers = graph.n_layers;
    layout_.n_kv_heads = graph.n_kv_heads;
    layout_.head_dim = graph.head_dim;
    layout_.n_blocks = kContext / kKvBlockTokens;
    kv_.resize(static_cast<size_t>(layout_.total_bytes()));
    blocks_.resize(static_cast<size_t>(layout_.n_blocks));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    prompt_kernel_ = compile(prompt_rows);
    token_kernel_ = compile(1);
  }

  // Log-probabilities of what follows `tokens`.
  std::vector<double> feed(const std::vector<int32_t>& tokens) {
    const auto rows = static_cast<int64_t>(tokens.size());
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(length_));
    const SequenceView sequence = {0, rows, length_, blocks_.data()};
    const auto last = static_cast<int32_t>(rows - 1);
    BatchView batch;
    batch.n_rows = rows;
    batch.tokens = tokens;
    batch.positions = positions;
    batch.sequences = {&sequence, 1};
    batch.logit_rows = {&last, 1};
    batch.kv = kv_.data();
    batch.kv_layout = layout_;
    const Kernel& kernel = rows == 1 ? *token_kernel_ : *prompt_kernel_;
    const auto fence = device_.submit(kernel, {views_, &batch}, {}, {});
    const Status done = fence ? fence->wait() : Status(tl::unexpected(fence.error()));
    EXPECT_TRUE(done.has_value()) << done.error().message;
    length_ += rows;
    return logprobs();
  }

 private:
  std::unique_ptr<Kernel> compile(int64_t max_rows) {
    Program program;
    program.graph = &graph_;
    program.ops.resize(graph_.ops.size());
    std::iota(program.ops.begin(), program.ops.end(), 0);
    program.tensors.resize(graph_.tensors.size());
    std::iota(program.tensors.begin(), program.tensors.end(), 0);
    program.outputs = {graph_.logits};
    program.max_rows = max_rows;
    auto kernel = device_.compile(program);
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
    return std::move(*kernel);
  }

  std::vector<double> logprobs() const {
    const std::vector<float>& logits = memory_[static_cast<size_t>(graph_.logits)];
    const auto end = logits.begin() + graph_.n_vocab;
    const double most = *std::max_element(logits.begin(), end);
    const double sum = std::accumulate(logits.begin(), end, 0.0, [&](double total, float logit) {
      return total + std::exp(logit - most);
    });
    std::vector<double> result;
    std::transform(logits.begin(), end, std::back_inserter(result),
                   [&](float logit) { return logit - most - std::log(sum); });
    return result;
  }

  const graph::Graph& graph_;
  Device& device_;
  std::vector<std::vector<float>> memory_;
  std::vector<TensorView> views_;
  KvLayout layout_;
  std::vector<std::byte> kv_;
  std::vector<int32_t> blocks_;
  std::unique_ptr<Kernel> prompt_kernel_;
  std::unique_ptr<Kernel> token_kernel_;
  int64_t length_ = 0;
};

struct Difference {
  double nmse = 0;       // of the logits, whose mean means nothing
  double likeliest = 0;  // the largest among the kLikeliest
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Difference compare(const std::vector<double>& expected, const std::vector<double>& got) {
  std::vector<double> sorted = expected;
  std::nth_element(sorted.begin(), sorted.begin() + kLikeliest - 1, sorted.end(),
                   std::greater<double>());
  const double least = sorted[kLikeliest - 1];
  const double expected_mean = mean(expected);
  const double got_mean = mean(got);
  Difference difference;
  double power = 0;
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double centred = expected[i] - expected_mean;
    power += centred * centred;
    error += std::pow(got[i] - got_mean - centred, 2);
    if (expected[i] < least) continue;
    difference.likeliest = std::max(difference.likeliest, std::abs(got[i] - expected[i]));
  }
  difference.nmse = error / power;
  return difference;
}

class WholeModel : public ::testing::TestWithParam<const char*> {};

TEST_P(WholeModel, GivesWhatTheCpuGivesUpToFp16) {
  const bool is_trained = std::string_view(GetParam()).starts_with("models/");
  const std::string path = repository_path(GetParam());
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto model = model::Model::load(path);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto graph = graph::build(*model);
  ASSERT_TRUE(graph.has_value());
  const auto exact = std::move(*cpu::open({}));
  const auto npu = std::move(*open({}));
  Runner expected(*graph, *exact, 64);
  Runner got(*graph, *npu, 64);
  std::vector<int32_t> tokens;
  for (int i = 0; i < 45; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 37 + 11) % graph->n_vocab));
  }
  for (int pass = 0; pass < 4; ++pass) {
    const std::vector<double> a = expected.feed(tokens);
    const std::vector<double> b = got.feed(tokens);
    const Difference difference = compare(a, b);
    EXPECT_LT(difference.nmse, kNmseBound) << "pass " << pass;
    EXPECT_GT(difference.nmse, 0) << "FP16 leaves a trace";
    if (is_trained) {
      EXPECT_LT(difference.likeliest, kLogprobBound) << "pass " << pass;
    }
    tokens = {static_cast<int32_t>(std::max_element(a.begin(), a.end()) - a.begin())};
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, WholeModel,
    ::testing::Values("tests/models/bf16-wide-heads.gguf", "tests/models/f16-both-ropes.gguf",
                      "tests/models/f16-untied.gguf", "tests/models/f32-odd.gguf",
                      "tests/models/mixed-types.gguf", "tests/models/q4_0-linear-rope.gguf",
                      "tests/models/q4_0-small.gguf", "tests/models/q4_1-like-default.gguf",
                      "tests/models/q4_1-narrow-mlp.gguf", "tests/models/q8_0-one-head.gguf",
                      "tests/models/q8_0-partial-rope.gguf",
                      "models/SmolLM2-135M-Instruct.Q4_1.gguf"));

}  // namespace
}  // namespace troika::device::systolic
