#include "troika/model/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "troika/model/model.h"
#include "troika/model/quantize.h"
#include "troika/model/random_weights.h"
#include "troika/model/synthetic_vocabulary.h"

namespace troika::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Synth : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("troika_synth_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "model.gguf").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  static SynthOptions tiny(TensorType type, uint64_t seed = 1) {
    SynthOptions options;
    const bool small = traits(type).block_weights <= 32;
    options.shape = parse_shape(small ? "tiny" : "256,2,4,2,512,512").value();
    options.shape.tied = true;
    options.mix.type = type;
    options.seed = seed;
    return options;
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(Synth, EveryTypeLoads) {
  for (const TensorType type : kTensorTypes) {
    const auto status = write_synthetic_model(path_, tiny(type));
    ASSERT_TRUE(status) << status.error().message;
    const auto model = Model::load(path_);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->type_name(), traits(type).name);
    EXPECT_EQ(model->hyper_parameters().n_vocab, 512);
    EXPECT_EQ(model->find("output.weight"), nullptr);  // tied
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(Synth, AMixGivesTheBetterTypeToWhatMattersMost) {
  SynthOptions options;
  options.shape = parse_shape("256,8,4,2,512,512").value();
  options.mix = parse_mix("q4_k_m").value();
  EXPECT_EQ(options.mix.name(), "Q4_K_M");
  for (const bool tied : {false, true}) {
    options.shape.tied = tied;
    const auto status = write_synthetic_model(path_, options);
    ASSERT_TRUE(status) << status.error().message;
    const auto model = Model::load(path_);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->type_name(), "Q4_K");
    const auto type = [&](const std::string& name) { return model->find(name)->type; };
    EXPECT_EQ(type("token_embd.weight"), tied ? TensorType::kQ6_K : TensorType::kQ4_K);
    if (!tied) {
      EXPECT_EQ(type("output.weight"), TensorType::kQ6_K);
    }
    for (int layer = 0; layer < 8; ++layer) {
      const std::string block = fmt::format("blk.{}.", layer);
      const bool better = layer == 0 || layer == 3 || layer == 6 || layer == 7;
      EXPECT_EQ(type(block + "attn_v.weight"), better ? TensorType::kQ6_K : TensorType::kQ4_K);
      EXPECT_EQ(type(block + "ffn_down.weight"), type(block + "attn_v.weight")) << layer;
      EXPECT_EQ(type(block + "attn_q.weight"), TensorType::kQ4_K);
      EXPECT_EQ(type(block + "ffn_norm.weight"), TensorType::kF32);
    }
  }
  EXPECT_THAT(parse_mix("Q4_K_S").error().message, HasSubstr("Q4_K, Q6_K, Q4_K_M"));
}

TEST_F(Synth, SameSeedSameBytes) {
  const std::string other = (folder_ / "other.gguf").string();
  ASSERT_TRUE(write_synthetic_model(path_, tiny(TensorType::kQ4_0)));
  ASSERT_TRUE(write_synthetic_model(other, tiny(TensorType::kQ4_0)));
  EXPECT_EQ(content(path_), content(other));
  ASSERT_TRUE(write_synthetic_model(other, tiny(TensorType::kQ4_0, 2)));
  EXPECT_NE(content(path_), content(other));
}

// As computed independently, so that no machine or compiler gives others unnoticed.
TEST_F(Synth, KnownBytes) {
  std::vector<std::byte> block(18);
  RandomWeights(1, "token_embd.weight").fill(TensorType::kQ4_0, 1.0f, block);
  std::string hex;
  for (const std::byte b : block) hex += fmt::format("{:02x}", static_cast<int>(b));
  EXPECT_EQ(hex, "abb20d0e7abd118a58c353fcec07af9eab1f");
}

TEST_F(Synth, WeightsHaveTheScaleAskedFor) {
  for (const TensorType type : kTensorTypes) {
    constexpr size_t kCount = 32 * 4000;  // whole blocks of every type
    std::vector<std::byte> row(static_cast<size_t>(row_bytes(type, kCount)));
    RandomWeights(3, "w").fill(type, 0.02f, row);
    std::vector<float> values(kCount);
    dequantize_row(type, row.data(), values);
    double sum = 0;
    double squares = 0;
    for (const float v : values) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    EXPECT_NEAR(std::sqrt(squares / kCount), 0.02, 0.0004) << traits(type).name;
    EXPECT_NEAR(sum / kCount, 0, 0.0004) << traits(type).name;
  }
}

TEST_F(Synth, RopeFactorsOfLlama3) {
  SynthOptions options = tiny(TensorType::kF16);
  options.shape.llama3_scaling = true;
  options.shape.llama3_factor = 32;
  options.shape.rope_base = 5e5f;
  options.shape.tied = false;
  ASSERT_TRUE(write_synthetic_model(path_, options));
  const auto model = Model::load(path_);
  ASSERT_TRUE(model) << model.error().message;
  const std::vector<float>& factors = model->hyper_parameters().rope_factors;
  ASSERT_EQ(factors.size(), 8u);
  EXPECT_EQ(factors.front(), 1.0f);
  EXPECT_EQ(factors.back(), 32.0f);
  EXPECT_TRUE(std::is_sorted(factors.begin(), factors.end()));
  EXPECT_NE(model->find("output.weight"), nullptr);
}

TEST_F(Synth, TokenizerEncodesAnyText) {
  ASSERT_TRUE(write_synthetic_model(path_, tiny(TensorType::kQ4_0)));
  const auto model = Model::load(path_, {.weights = false, .threads = 1, .progress = {}});
  ASSERT_TRUE(model) << model.error().message;
  for (const std::string text : {"hello world", "Grüße, 世界!\n", "\x01\xff\xfe", ""}) {
    const auto ids = model->tokenizer().encode(text, false);
    EXPECT_EQ(model->tokenizer().decode(ids, true), text);
  }
  EXPECT_LT(model->tokenizer().encode("hello world", false).size(), 11u);  // merges are used
  EXPECT_TRUE(model->weights().empty());
  EXPECT_FALSE(model->chat_template_source().empty());
}

TEST_F(Synth, AnOutlineIsTheModelWithoutData) {
  const SynthOptions options = tiny(TensorType::kQ4_0);
  const auto outline = outline_model(options);
  ASSERT_TRUE(outline.has_value()) << outline.error().message;
  ASSERT_TRUE(write_synthetic_model(path_, options).has_value());
  const auto model = Model::load(path_);
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(outline->fingerprint(), model->fingerprint());
  ASSERT_EQ(outline->weights().size(), model->weights().size());
  for (size_t i = 0; i < model->weights().size(); ++i) {
    EXPECT_EQ(outline->weights()[i].name, model->weights()[i].name);
    EXPECT_EQ(outline->weights()[i].bytes(), model->weights()[i].bytes());
    EXPECT_EQ(outline->weights()[i].data, nullptr);
  }
}

TEST_F(Synth, CancelLeavesNothing) {
  SynthOptions options = tiny(TensorType::kF32);
  options.progress = [](uint64_t done, uint64_t all) { return done * 2 < all; };
  const auto status = write_synthetic_model(path_, options);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Synth, ProgressEndsAtAll) {
  SynthOptions options = tiny(TensorType::kQ8_0);
  uint64_t last = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, all);
    last = done;
    return true;
  };
  ASSERT_TRUE(write_synthetic_model(path_, options));
  EXPECT_GT(last, synthetic_model_bytes(options).value() * 9 / 10);
}

TEST_F(Synth, ReplacesRegularFilesOnly) {
  std::ofstream(path_) << "old";
  const std::string link = (folder_ / "link").string();
  fs::create_symlink(path_, link);
  ASSERT_TRUE(write_synthetic_model(link, tiny(TensorType::kQ4_0)));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(content(path_).substr(0, 4), "GGUF");
  for (const std::string& path : {folder_.string(), std::string("/dev/null")}) {
    const auto status = write_synthetic_model(path, tiny(TensorType::kQ4_0));
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << status.error().message;
  }
  const auto status =
      write_synthetic_model((folder_ / "no" / "model").string(), tiny(TensorType::kQ4_0));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound) << status.error().message;
}

TEST_F(Synth, RefusesShapesThatCannotBe) {
  const auto message = [](const char* text) {
    const auto shape = parse_shape(text);
    return shape ? std::string("accepted") : shape.error().message;
  };
  EXPECT_THAT(message("gpt-9"), HasSubstr("smollm2-135m"));
  EXPECT_THAT(message("64,2,4,2,128"), HasSubstr("six numbers"));
  EXPECT_THAT(message("64,2,4,2,128,512,"), HasSubstr("six numbers"));
  EXPECT_THAT(message("64,2,4,3,128,512"), HasSubstr("not a multiple of 3 KV heads"));
  EXPECT_THAT(message("64,2,5,5,128,512"), HasSubstr("not a multiple of 5 heads"));
  EXPECT_THAT(message("60,2,4,4,128,512"), HasSubstr("15 dimensions"));
  EXPECT_THAT(message("64,0,4,4,128,512"), HasSubstr("layers is 0"));
  EXPECT_THAT(message("64,2,0,4,128,512"), HasSubstr("heads is 0"));
  EXPECT_THAT(message("-64,2,4,4,128,512"), HasSubstr("hidden size is -64"));
  EXPECT_EQ(parse_shape("Llama-3-8B")->ffn, 14336);
  EXPECT_EQ(parse_shape("64,2,4,2,128,512")->head_dim, 16);

  SynthOptions options;
  options.shape = parse_shape("64,2,4,2,100,512").value();
  options.mix.type = TensorType::kQ4_0;
  EXPECT_THAT(write_synthetic_model(path_, options).error().message, HasSubstr("multiple of 32"));
  options.shape = parse_shape("64,2,4,2,128,100").value();
  EXPECT_THAT(write_synthetic_model(path_, options).error().message, HasSubstr("258 to"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(Synth, VocabulariesOfEverySizeHaveDistinctTokens) {
  for (const int64_t n : {258, 259, 32000, 128256}) {
    const auto vocabulary = make_synthetic_vocabulary(n);
    ASSERT_TRUE(vocabulary) << vocabulary.error().message;
    EXPECT_EQ(static_cast<int64_t>(vocabulary->tokens.size()), n);
    EXPECT_EQ(static_cast<int64_t>(vocabulary->merges.size()), n - 258);
    std::vector<std::string> sorted = vocabulary->tokens;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << n;
  }
}

}  // namespace
}  // namespace troika::model
