// An output row has the same bits alone or in any batch, with any chunking and any number of
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "tests/repository.h"
#include "troika/device/cpu/cpu_device.h"
#include "troika/graph/graph.h"
#include "troika/plan/plan.h"
#include "troika/runtime/executor.h"

namespace troika {
namespace {

using runtime::BatchItem;
using runtime::SequenceId;
using runtime::WantLogits;
using Tokens = std::vector<model::TokenId>;
using Rows = std::vector<std::vector<float>>;

constexpr int64_t kContext = 256;

// A model on a `cpu` device with any number of threads, more than this machine has cores too.
class Runner {
 public:
  Runner(const std::string& model_name, int threads, device::KvType kv_type)
      : model_(load(model_name)), graph_(*graph::build(model_)) {
    device::cpu::CpuOptions options;
    options.threads = threads;
    devices_.push_back(std::move(*device::cpu::open(options)));
    device::KvLayout layout;
    layout.type = kv_type;
    layout.n_layers = graph_.n_layers;
    layout.n_kv_heads = graph_.n_kv_heads;
    layout.head_dim = graph_.head_dim;
    layout.n_blocks = 12 * kContext / device::kKvBlockTokens;
    cache_.emplace(std::move(*runtime::KvCache::create(layout, kContext, pool_)));
    runtime::ExecutorOptions executor_options;
    executor_options.max_logit_rows = 4 * kContext;
    executor_ = std::move(*runtime::Executor::create(
        graph_, plan::single_device_plan(graph_, "cpu", 4 * kContext, "f32"), devices_, pool_,
        *cache_, executor_options));
  }

  Result<runtime::Logits> forward(const runtime::Batch& batch) { return executor_->forward(batch); }
  runtime::KvCache& kv_cache() { return *cache_; }
  int64_t n_vocab() const { return graph_.n_vocab; }

 private:
  static model::Model load(const std::string& name) {
    return *model::Model::load(repository_path("tests/models/") + name);
  }

  model::Model model_;
  graph::Graph graph_;
  device::SharedPool pool_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::optional<runtime::KvCache> cache_;
  std::unique_ptr<runtime::Executor> executor_;
};

Tokens random_tokens(std::mt19937& random, int64_t count, int64_t n_vocab) {
  Tokens tokens(static_cast<size_t>(count));
  for (model::TokenId& token : tokens) {
    token = static_cast<model::TokenId>(random() % static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

void append(Rows& rows, const runtime::Logits& logits, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto row = logits.row(first + i);
    rows.emplace_back(row.begin(), row.end());
  }
}

// Logits of every token, computed in chunks of the given sizes (the last one repeats).
Rows in_chunks(Runner& runner, SequenceId sequence, std::span<const model::TokenId> tokens,
               const std::vector<size_t>& sizes) {
  Rows rows;
  size_t chunk = 0;
  for (size_t begin = 0; begin < tokens.size();) {
    const size_t size = std::min(sizes[std::min(chunk++, sizes.size() - 1)], tokens.size() - begin);
    const auto logits =
        runner.forward({{{sequence, tokens.subspan(begin, size), WantLogits::kAll}}});
    EXPECT_TRUE(logits.has_value()) << logits.error().message;
    if (!logits) return rows;
    append(rows, *logits, 0, static_cast<int64_t>(size));
    begin += size;
  }
  return rows;
}

Rows alone(Runner& runner, std::span<const model::TokenId> tokens,
           const std::vector<size_t>& sizes) {
  const SequenceId sequence = runner.kv_cache().new_sequence();
  Rows rows = in_chunks(runner, sequence, tokens, sizes);
  runner.kv_cache().release(sequence);
  return rows;
}

void expect_same_bits(const Rows& got, const Rows& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size());
    ASSERT_EQ(std::memcmp(got[i].data(), expected[i].data(), got[i].size() * sizeof(float)), 0)
        << "row " << i;
  }
}

struct Case {
  const char* model;
  device::KvType kv_type;
};

class BatchBits : public ::testing::TestWithParam<Case> {};

TEST_P(BatchBits, DoNotDependOnChunksOrThreads) {
  std::mt19937 random(1);
  Runner one(GetParam().model, 1, GetParam().kv_type);
  const Tokens tokens = random_tokens(random, 131, one.n_vocab());
  const Rows expected = alone(one, tokens, {131});
  const std::vector<std::vector<size_t>> chunkings = {
      {1}, {2}, {3}, {7}, {16}, {31}, {32}, {33}, {64}, {100}, {5, 1, 40, 2, 33, 1}};
  for (const auto& sizes : chunkings) {
    SCOPED_TRACE("chunks of " + std::to_string(sizes[0]));
    expect_same_bits(alone(one, tokens, sizes), expected);
  }
  for (const int threads : {2, 3, 5}) {
    SCOPED_TRACE(std::to_string(threads) + " threads");
    Runner several(GetParam().model, threads, GetParam().kv_type);
    expect_same_bits(alone(several, tokens, {131}), expected);
    expect_same_bits(alone(several, tokens, {40, 1, 17}), expected);
  }
}

TEST_P(BatchBits, DoNotDependOnOtherSequencesInTheBatch) {
  std::mt19937 random(2);
  Runner runner(GetParam().model, 2, GetParam().kv_type);
  const int64_t n_vocab = runner.n_vocab();
  constexpr size_t kSequences = 6;
  std::vector<Tokens> texts;
  std::vector<Rows> expected;
  for (size_t s = 0; s < kSequences; ++s) {
    texts.push_back(random_tokens(random, 20 + static_cast<int64_t>(random() % 90), n_vocab));
    expected.push_back(alone(runner, texts[s], {texts[s].size()}));
  }
  std::vector<SequenceId> ids;
  for (size_t s = 0; s < kSequences; ++s) ids.push_back(runner.kv_cache().new_sequence());
  std::vector<size_t> done(kSequences, 0);
  std::vector<Rows> got(kSequences);
  // Each step takes a random number of tokens of a random subset, in random order.
  while (true) {
    std::vector<size_t> order;
    for (size_t s = 0; s < kSequences; ++s) {
      if (done[s] < texts[s].size() && random() % 3 != 0) order.push_back(s);
    }
    std::shuffle(order.begin(), order.end(), random);
    runtime::Batch batch;
    for (const size_t s : order) {
      const size_t count = std::min<size_t>(1 + random() % 40, texts[s].size() - done[s]);
      batch.items.push_back(
          {ids[s], std::span(texts[s]).subspan(done[s], count), WantLogits::kAll});
    }
    if (batch.items.empty()) {
      bool all = true;
      for (size_t s = 0; s < kSequences; ++s) all = all && done[s] == texts[s].size();
      if (all) break;
      continue;
    }
    const auto logits = runner.forward(batch);
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    int64_t row = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto count = static_cast<int64_t>(batch.items[i].tokens.size());
      append(got[order[i]], *logits, row, count);
      row += count;
      done[order[i]] += static_cast<size_t>(count);
    }
  }
  for (size_t s = 0; s < kSequences; ++s) expect_same_bits(got[s], expected[s]);
}

TEST_P(BatchBits, DoNotDependOnASharedBeginning) {
  std::mt19937 random(3);
  Runner runner(GetParam().model, 2, GetParam().kv_type);
  const int64_t n_vocab = runner.n_vocab();
  const Tokens text = random_tokens(random, 90, n_vocab);
  for (const int64_t shared : {1, 31, 32, 45, 64, 89}) {
    SCOPED_TRACE("first " + std::to_string(shared) + " shared");
    Tokens other(text.begin(), text.begin() + shared);
    for (const model::TokenId token : random_tokens(random, 20, n_vocab)) other.push_back(token);
    const Rows expected = alone(runner, other, {other.size()});
    const Rows expected_text = alone(runner, text, {text.size()});

    runtime::KvCache& cache = runner.kv_cache();
    const SequenceId base = cache.new_sequence();
    Rows base_rows = in_chunks(runner, base, std::span(text).first(80), {80});
    if (shared <= 80) {
      const auto fork = cache.fork(base, shared);
      ASSERT_TRUE(fork.has_value());
      const Rows rows =
          in_chunks(runner, *fork, std::span(other).subspan(static_cast<size_t>(shared)), {9});
      expect_same_bits(rows, Rows(expected.begin() + shared, expected.end()));
      cache.release(*fork);
    }
    // The sequence that was forked goes on as if nothing had happened.
    for (auto& row : in_chunks(runner, base, std::span(text).subspan(80), {3})) {
      base_rows.push_back(std::move(row));
    }
    expect_same_bits(base_rows, expected_text);
    cache.release(base);
  }
}

TEST_P(BatchBits, AreTheSameAgainAfterATruncation) {
  std::mt19937 random(4);
  Runner runner(GetParam().model, 2, GetParam().kv_type);
  const Tokens text = random_tokens(random, 100, runner.n_vocab());
  const Rows expected = alone(runner, text, {100});
  const SequenceId sequence = runner.kv_cache().new_sequence();
  in_chunks(runner, sequence, text, {100});
  for (const int64_t kept : {99, 64, 33, 1, 0}) {
    runner.kv_cache().truncate(sequence, kept);
    const Rows rows =
        in_chunks(runner, sequence, std::span(text).subspan(static_cast<size_t>(kept)), {11});
    expect_same_bits(rows, Rows(expected.begin() + kept, expected.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BatchBits,
                         ::testing::Values(Case{"f32-odd.gguf", device::KvType::kF32},
                                           Case{"q4_1-like-default.gguf", device::KvType::kF32},
                                           Case{"q4_1-like-default.gguf", device::KvType::kF16},
                                           Case{"mixed-types.gguf", device::KvType::kF32},
                                           Case{"q4_k_m-like.gguf", device::KvType::kF32},
                                           Case{"bf16-wide-heads.gguf", device::KvType::kF16},
                                           Case{"q8_0-partial-rope.gguf", device::KvType::kF32},
                                           Case{"q4_0-small.gguf", device::KvType::kF32}));

}  // namespace
}  // namespace troika
