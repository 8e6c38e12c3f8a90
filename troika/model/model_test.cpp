#include "troika/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "tests/repository.h"
#include "troika/model/available_memory.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TinyModel;

Result<Model> load(const std::vector<std::byte>& bytes, const LoadOptions& options = {}) {
  return Model::load(*memory_source(bytes), "tiny.gguf", options);
}

TEST(Model, LoadsWithTheFilesBytesAtAlignedAddresses) {
  const TinyModel tiny(TensorType::kQ4_1, false);
  for (const int threads : {1, 3, 1000}) {
    const auto model = load(tiny.bytes(), {.weights = true, .threads = threads, .progress = {}});
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ(model->weights().size(), tiny.tensors.size());
    for (const TinyModel::Tensor& t : tiny.tensors) {
      const Weight* w = model->find(t.name);
      ASSERT_NE(w, nullptr) << t.name;
      EXPECT_EQ(w->cols, static_cast<int64_t>(t.dims[0]));
      EXPECT_EQ(w->rows, t.dims.size() > 1 ? static_cast<int64_t>(t.dims[1]) : 1);
      ASSERT_EQ(w->bytes(), static_cast<int64_t>(t.data.size()));
      EXPECT_TRUE(std::equal(t.data.begin(), t.data.end(), w->data)) << t.name;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(w->data) % 64, 0u) << t.name;
    }
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model->weights()[0].data) % 4096, 0u);
    EXPECT_EQ(model->type_name(), "Q4_1");
    EXPECT_EQ(model->path(), "tiny.gguf");
    EXPECT_EQ(model->hyper_parameters().n_vocab, 300);
    EXPECT_EQ(model->tokenizer().vocab_size(), 300);
    EXPECT_EQ(model->find("absent"), nullptr);
  }
}

TEST(Model, SurvivesAMove) {
  auto model = load(TinyModel().bytes());
  ASSERT_TRUE(model) << model.error().message;
  const std::byte* data = model->find("token_embd.weight")->data;
  const Model moved = std::move(*model);
  EXPECT_EQ(moved.find("token_embd.weight")->data, data);
  EXPECT_EQ(moved.find("token_embd.weight")->name, "token_embd.weight");
}

TEST(Model, FingerprintTellsModelsApart) {
  const auto one = load(TinyModel().bytes());
  const auto same = load(TinyModel().bytes());
  TinyModel other;
  other.metadata["general.name"] = std::string("other");
  const auto differs = load(other.bytes());
  ASSERT_TRUE(one && same && differs);
  EXPECT_EQ(one->fingerprint(), same->fingerprint());
  EXPECT_NE(one->fingerprint(), differs->fingerprint());
}

TEST(Model, WithoutWeightsAVocabularyIsEnough) {
  TinyModel tiny;
  tiny.tensors.clear();
  const auto model = load(tiny.bytes(), {.weights = false, .threads = 1, .progress = {}});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->hyper_parameters().n_vocab, 300);
  EXPECT_TRUE(model->weights().empty());
}

TEST(Model, ProgressReachesAllAndCanCancel) {
  const std::vector<std::byte> bytes = TinyModel().bytes();
  uint64_t last = 0;
  uint64_t all = 0;
  const auto model =
      load(bytes, {.weights = true, .threads = 2, .progress = [&](uint64_t done, uint64_t total) {
                     last = done;
                     all = total;
                     return true;
                   }});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0u);
  const auto cancelled = load(
      bytes, {.weights = true, .threads = 2, .progress = [](uint64_t, uint64_t) { return false; }});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

struct Damage {
  const char* name;
  std::function<void(TinyModel&)> make;
  const char* message;
  ErrorCode code = ErrorCode::kInvalidData;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedModel : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedModel, IsRefused) {
  TinyModel tiny;
  GetParam().make(tiny);
  const std::clock_t start = std::clock();
  const auto model = load(tiny.bytes());
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, GetParam().code) << model.error().message;
  EXPECT_THAT(model.error().message, HasSubstr(GetParam().message));
  EXPECT_LT(took, 1.0);
}

template <class T>
T& value(TinyModel& m, const char* key) {
  return std::get<T>(m.metadata.at(key));
}

void set_f16(TinyModel& m, const char* tensor, size_t at, uint16_t bits) {
  std::memcpy(m.tensor(tensor).data.data() + at, &bits, sizeof(bits));
}

void add_rope_factors(TinyModel& m, std::vector<float> factors) {
  TinyModel::Tensor t{"rope_freqs.weight", {factors.size()}, 0, {}};
  t.data.resize(factors.size() * sizeof(float));
  std::memcpy(t.data.data(), factors.data(), t.data.size());
  m.tensors.push_back(std::move(t));
}

const Damage kVocabulary[] = {
    {"FewerTokensThanRows",
     [](TinyModel& m) {
       value<std::vector<std::string>>(m, "tokenizer.ggml.tokens").resize(299);
       value<std::vector<int32_t>>(m, "tokenizer.ggml.token_type").resize(299);
       value<std::vector<std::string>>(m, "tokenizer.ggml.merges").resize(41);
     },
     "299 tokens, but token_embd.weight has 300 rows"},
    {"NoTokens", [](TinyModel& m) { m.metadata.erase("tokenizer.ggml.tokens"); },
     "tokenizer.ggml.tokens"},
    {"NoTokenizer", [](TinyModel& m) { m.metadata.erase("tokenizer.ggml.model"); },
     "has no tokenizer"},
    {"TokensAsNumbers",
     [](TinyModel& m) { m.metadata["tokenizer.ggml.tokens"] = std::vector<int32_t>(300); },
     "not an array of strings"},
    {"ScoresAsBytes",
     [](TinyModel& m) { m.metadata["tokenizer.ggml.scores"] = std::vector<uint8_t>(300); },
     "not an array of floats"},
    {"FewScores",
     [](TinyModel& m) { m.metadata["tokenizer.ggml.scores"] = std::vector<float>(10); },
     "10 elements for 300 tokens"},
    {"FewTypes",
     [](TinyModel& m) { m.metadata["tokenizer.ggml.token_type"] = std::vector<int32_t>(10, 1); },
     "10 elements for 300 tokens"},
    {"UnknownType",
     [](TinyModel& m) { value<std::vector<int32_t>>(m, "tokenizer.ggml.token_type")[7] = 99; },
     "token 7 has the unknown type 99"},
    {"BosBeyondVocabulary",
     [](TinyModel& m) { m.metadata["tokenizer.ggml.bos_token_id"] = uint32_t{300}; },
     "bos_token_id' is 300"},
    {"EosNegative", [](TinyModel& m) { m.metadata["tokenizer.ggml.eos_token_id"] = int32_t{-1}; },
     "negative"},
    {"MergeOfAbsentToken",
     [](TinyModel& m) {
       value<std::vector<std::string>>(m, "tokenizer.ggml.merges")[3] = "nosuch token";
     },
     "nosuch"},
    {"VocabSizeLies", [](TinyModel& m) { m.metadata["llama.vocab_size"] = uint32_t{301}; },
     "vocab_size' is 301"},
};
INSTANTIATE_TEST_SUITE_P(Vocabulary, DamagedModel, ::testing::ValuesIn(kVocabulary));

const Damage kTensorTable[] = {
    {"MissingTensor", [](TinyModel& m) { m.remove_tensor("blk.0.ffn_up.weight"); },
     "'blk.0.ffn_up.weight' is missing"},
    {"MissingEmbedding", [](TinyModel& m) { m.remove_tensor("token_embd.weight"); },
     "'token_embd.weight' is missing"},
    {"NoTensors", [](TinyModel& m) { m.tensors.clear(); }, "'token_embd.weight' is missing"},
    {"MoreLayersThanTensors", [](TinyModel& m) { m.metadata["llama.block_count"] = uint32_t{2}; },
     "'blk.1.attn_norm.weight' is missing"},
    {"WrongShape",
     [](TinyModel& m) {
       std::swap(m.tensor("blk.0.ffn_up.weight").dims[0], m.tensor("blk.0.ffn_up.weight").dims[1]);
     },
     "'blk.0.ffn_up.weight' has the shape [96, 64]; [64, 96] is needed"},
    {"UnknownBlockTensor",
     [](TinyModel& m) {
       m.tensors.push_back({"blk.0.attn_q.bias", {64}, 0, std::vector<std::byte>(256)});
     },
     "'blk.0.attn_q.bias'", ErrorCode::kUnsupported},
    {"UnknownTensor",
     [](TinyModel& m) {
       m.tensors.push_back({"mm.projector", {64}, 0, std::vector<std::byte>(256)});
     },
     "'mm.projector'", ErrorCode::kUnsupported},
    {"UnsupportedType", [](TinyModel& m) { m.tensor("blk.0.attn_q.weight").type_id = 13; },
     "'blk.0.attn_q.weight' has the type Q5_K", ErrorCode::kUnsupported},
    {"NotWholeSuperBlocks", [](TinyModel& m) { m.tensor("blk.0.attn_q.weight").type_id = 12; },
     "its rows have 64 weights, not a multiple of 256 as Q4_K needs"},
    {"UnknownTypeId", [](TinyModel& m) { m.tensor("blk.0.attn_q.weight").type_id = 12345; },
     "#12345", ErrorCode::kUnsupported},
    {"NormInHalfPrecision",
     [](TinyModel& m) {
       m.tensor("output_norm.weight").type_id = 1;
       m.tensor("output_norm.weight").data.resize(128);
     },
     "F32 is needed", ErrorCode::kUnsupported},
    {"RopeFactorsOfOtherLength",
     [](TinyModel& m) {
       add_rope_factors(m, {1, 2, 3});
     },
     "'rope_freqs.weight' has the shape [3]; [8] is needed"},
    {"RopeFactorOf0",
     [](TinyModel& m) {
       add_rope_factors(m, {1, 1, 1, 0, 1, 1, 1, 1});
     },
     "'rope_freqs.weight' holds 0"},
    {"SplitModel",
     [](TinyModel& m) {
       m.metadata["split.count"] = uint32_t{3};
       m.metadata["split.no"] = uint32_t{1};
     },
     "part 2 of 3", ErrorCode::kUnsupported},
    {"SplitCountLies",
     [](TinyModel& m) {
       m.metadata["split.count"] = uint32_t{2};
       m.metadata["split.no"] = uint32_t{7};
     },
     "split 8 of 2"},
    {"SplitCountIsText", [](TinyModel& m) { m.metadata["split.count"] = std::string("2"); },
     "not an integer"},
};
INSTANTIATE_TEST_SUITE_P(TensorTable, DamagedModel, ::testing::ValuesIn(kTensorTable));

// Q4_0: 18 bytes to a block, 36 to a row of 64.
const Damage kWeights[] = {
    {"InfiniteScale", [](TinyModel& m) { set_f16(m, "blk.0.attn_q.weight", 36 * 5 + 18, 0x7c00); },
     "'blk.0.attn_q.weight' has a NaN or an infinity in row 5"},
    {"NaNScale", [](TinyModel& m) { set_f16(m, "token_embd.weight", 36 * 299, 0xfe00); },
     "'token_embd.weight' has a NaN or an infinity in row 299"},
    {"NaNInNorm", [](TinyModel& m) { set_f16(m, "output_norm.weight", 4 * 63 + 2, 0x7fc0); },
     "'output_norm.weight' has a NaN or an infinity in row 0"},
};
INSTANTIATE_TEST_SUITE_P(Weights, DamagedModel, ::testing::ValuesIn(kWeights));

TEST(Model, SuperBlocksWithBadScalesAreRefused) {
  struct Scale {
    TensorType type;
    size_t at;  // in row 5; rows are one block
  };
  for (const Scale& scale :
       {Scale{TensorType::kQ4_K, 5 * 144}, Scale{TensorType::kQ4_K, 5 * 144 + 2},
        Scale{TensorType::kQ6_K, 5 * 210 + 208}}) {
    TinyModel tiny(scale.type);
    ASSERT_TRUE(load(tiny.bytes()));
    set_f16(tiny, "blk.0.attn_q.weight", scale.at, 0x7c00);
    const auto model = load(tiny.bytes());
    ASSERT_FALSE(model);
    EXPECT_THAT(model.error().message, HasSubstr("NaN or an infinity in row 5"));
  }
}

TEST(Model, RopeFactorsBecomeHyperParameters) {
  TinyModel tiny;
  add_rope_factors(tiny, {1, 1, 1, 2, 3, 8, 8, 8});
  const auto model = load(tiny.bytes());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(model->hyper_parameters().rope_factors,
              ::testing::ElementsAre(1, 1, 1, 2, 3, 8, 8, 8));
}

TEST(Model, OneSplitIsAWholeModel) {
  TinyModel tiny;
  tiny.metadata["split.count"] = uint32_t{1};
  tiny.metadata["split.no"] = uint32_t{0};
  EXPECT_TRUE(load(tiny.bytes()));
}

// A source that fails as a file does that shrinks while it is read.
class ShrinkingSource : public ByteSource {
 public:
  ShrinkingSource(std::span<const std::byte> bytes, uint64_t end)
      : source_(memory_source(bytes)), end_(end) {}
  uint64_t size() const override { return source_->size(); }
  Status read(uint64_t offset, std::span<std::byte> out) const override {
    if (offset >= end_) return make_error(ErrorCode::kIo, "the file ends at byte {}", end_);
    return source_->read(offset, out);
  }

 private:
  std::unique_ptr<ByteSource> source_;
  uint64_t end_;
};

TEST(Model, ShrinkingFileIsAnError) {
  const std::vector<std::byte> bytes = TinyModel().bytes();
  const ShrinkingSource source(bytes, bytes.size() - 1000);
  const auto model = Model::load(source, "x", {.weights = true, .threads = 2, .progress = {}});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kIo);
}

// A file of holes whose one matrix is larger than memory.
TEST(Model, MoreWeightsThanMemory) {
  const auto available = available_memory_bytes();
  if (!available) GTEST_SKIP() << "this system does not say how much memory is available";
  TinyModel tiny(TensorType::kF32);
  constexpr uint64_t kFfn = uint64_t{1} << 24;
  constexpr uint64_t kMatrix = kFfn * 64 * 4;
  const uint64_t layers = *available / kMatrix + 1;
  tiny.metadata["llama.feed_forward_length"] = static_cast<uint32_t>(kFfn);
  tiny.metadata["llama.block_count"] = static_cast<uint32_t>(layers);
  std::vector<TinyModel::Tensor> whole;
  for (const TinyModel::Tensor& t : tiny.tensors) {
    const bool in_layer = t.name.compare(0, 6, "blk.0.") == 0;
    for (uint64_t layer = 0; layer < (in_layer ? layers : 1); ++layer) {
      TinyModel::Tensor copy{t.name, t.dims, t.type_id, {}};
      if (in_layer) copy.name = fmt::format("blk.{}.{}", layer, t.name.substr(6));
      std::replace(copy.dims.begin(), copy.dims.end(), uint64_t{96}, kFfn);
      whole.push_back(std::move(copy));
    }
  }
  tiny.tensors = std::move(whole);
  const fs::path path = fs::temp_directory_path() / fmt::format("troika_holes_{}", ::getpid());
  const uint64_t file_bytes = tiny.write_holes(path);
  const std::clock_t start = std::clock();
  const auto model = Model::load(path.string());
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  fs::remove(path);
  ASSERT_GT(file_bytes, *available);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kOutOfMemory) << model.error().message;
  EXPECT_THAT(model.error().message, HasSubstr("GiB are available"));
  EXPECT_LT(took, 1.0);
}

TEST(Model, DefaultModel) {
  const std::string path = repository_path("models/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there; scripts/bootstrap gets it";
  const auto model = Model::load(path, {.weights = true, .threads = 2, .progress = {}});
  ASSERT_TRUE(model) << model.error().message;
  const HyperParameters& hp = model->hyper_parameters();
  EXPECT_EQ(hp.hidden, 576);
  EXPECT_EQ(hp.n_layers, 30);
  EXPECT_EQ(hp.n_heads, 9);
  EXPECT_EQ(hp.n_kv_heads, 3);
  EXPECT_EQ(hp.head_dim, 64);
  EXPECT_EQ(hp.ffn, 1536);
  EXPECT_EQ(hp.n_vocab, 49152);
  EXPECT_EQ(hp.n_ctx_train, 8192);
  EXPECT_EQ(hp.rope_base, 100000.0f);
  EXPECT_EQ(model->parameter_count(), 134515008u);
  EXPECT_EQ(model->type_name(), "Q4_1");
  EXPECT_EQ(model->weights().size(), 272u);
  EXPECT_FALSE(model->chat_template_source().empty());
}

}  // namespace
}  // namespace troika::model
