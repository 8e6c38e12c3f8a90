// Token ids as an independent tokenizer gave them (tests/reference/record_tokenizer.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/repository.h"
#include "troika/model/gguf.h"
#include "troika/model/tokenizer.h"
#include "troika/model/tokenizer_metadata.h"

namespace troika::model {
namespace {

using nlohmann::json;

json read_golden(const std::string& name) {
  std::ifstream file(repository_path("tests/golden/") + name);
  EXPECT_TRUE(file) << name;
  return json::parse(file);
}

Result<Tokenizer> tokenizer_of(const std::string& path) {
  ASSIGN_OR_RETURN(const auto source, open_file_source(path));
  ASSIGN_OR_RETURN(GgufHeader header, read_gguf_header(*source));
  ASSIGN_OR_RETURN(TokenizerData data, take_tokenizer_data(header));
  return Tokenizer::create(std::move(data));
}

class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override {
    golden_ = read_golden("tokenizer-smollm2.json");
    const std::string path = repository_path("models/") + golden_["model"].get<std::string>();
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << " is not there; run scripts/bootstrap";
    }
    auto made = tokenizer_of(path);
    ASSERT_TRUE(made) << made.error().message;
    tokenizer_.emplace(std::move(*made));
  }

  json golden_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(DefaultModel, GivesTheRecordedIds) {
  ASSERT_GE(golden_["cases"].size(), 200u);
  for (const json& item : golden_["cases"]) {
    const std::string text = item["text"];
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->encode(text, false), ids) << item["text"];
    const auto parsed = item.value("ids_with_special", ids);
    EXPECT_EQ(tokenizer_->encode(text, true), parsed) << item["text"];
  }
}

// The vocabulary has no tokens for these bytes: rare control bytes are left out, and so are the
// first bytes of characters above U+3FFFF.
bool has_all_bytes(const std::string& text) {
  return text.find_first_of("\x04\x06\x13\x14\x16\x1D\xF1\xF2") == std::string::npos;
}

TEST_F(DefaultModel, DecodesToTheText) {
  size_t n_decoded = 0;
  for (const json& item : golden_["cases"]) {
    const std::string text = item["text"];
    if (!has_all_bytes(text)) continue;
    ++n_decoded;
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, true), true), text) << item["text"];
  }
  EXPECT_GE(n_decoded, 200u);
}

TEST_F(DefaultModel, OneLongTextHasTheIdsOfItsParts) {
  // A newline before "x" ends a word, whatever comes before; long enough for the word cache.
  std::string text;
  std::vector<TokenId> ids;
  for (const json& item : golden_["cases"]) {
    const std::string part = fmt::format("x{}.\n", item["text"].get<std::string>());
    text += part;
    for (TokenId id : tokenizer_->encode(part, true)) ids.push_back(id);
  }
  ASSERT_GT(text.size(), 10'000u);
  EXPECT_EQ(tokenizer_->encode(text, true), ids);
}

TEST_F(DefaultModel, SpecialTokens) {
  EXPECT_EQ(tokenizer_->vocab_size(), 49152);
  EXPECT_EQ(tokenizer_->bos(), 1);
  EXPECT_EQ(tokenizer_->eos(), 2);
  EXPECT_FALSE(tokenizer_->add_bos());
  EXPECT_TRUE(tokenizer_->is_end_of_generation(0));  // <|endoftext|>
  EXPECT_FALSE(tokenizer_->is_end_of_generation(1));
  EXPECT_TRUE(tokenizer_->is_end_of_generation(2));
}

TEST_F(DefaultModel, InvalidBytesAreKeptWhereTheVocabularyHasThem) {
  const std::string kept = "a\x80\xE2\x82 \xC3z";
  EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(kept, false), true), kept);
  EXPECT_EQ(tokenizer_->decode(tokenizer_->encode("a\xFF", false), true), "a\uFFFD");
}

class PreTokenizers : public ::testing::TestWithParam<size_t> {};

TEST_P(PreTokenizers, GiveTheRecordedIds) {
  const json golden = read_golden("tokenizer-pre.json");
  ASSERT_EQ(golden["pre"].size(), 5u);
  TokenizerData data;
  data.model = "gpt2";
  data.pre = golden["pre"][GetParam()];
  data.tokens = golden["tokens"].get<std::vector<std::string>>();
  data.merges = golden["merges"].get<std::vector<std::string>>();
  const auto tokenizer = Tokenizer::create(data);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  ASSERT_GE(golden["cases"].size(), 200u);
  for (const json& item : golden["cases"]) {
    const std::string text = item["text"];
    const auto ids = item["ids"][GetParam()].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer->encode(text, false), ids) << data.pre << ": " << item["text"];
    EXPECT_EQ(tokenizer->decode(ids, true), text) << data.pre << ": " << item["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(All, PreTokenizers, ::testing::Range<size_t>(0, 5));

}  // namespace
}  // namespace troika::model
