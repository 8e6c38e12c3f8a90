#include "troika/model/hyper_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace troika::model {
namespace {

using ::testing::HasSubstr;

GgufHeader sound_header() {
  GgufHeader header;
  header.metadata = {
      {"general.architecture", std::string("llama")},   {"llama.context_length", uint64_t{2048}},
      {"llama.embedding_length", uint64_t{64}},         {"llama.block_count", uint64_t{2}},
      {"llama.feed_forward_length", uint64_t{128}},     {"llama.attention.head_count", uint64_t{4}},
      {"llama.attention.layer_norm_rms_epsilon", 1e-5},
  };
  return header;
}

TEST(HyperParameters, Defaults) {
  const auto hp = read_hyper_parameters(sound_header());
  ASSERT_TRUE(hp) << hp.error().message;
  EXPECT_EQ(hp->n_kv_heads, 4);
  EXPECT_EQ(hp->head_dim, 16);
  EXPECT_EQ(hp->rope_dim, 16);
  EXPECT_EQ(hp->rope_base, 10000.0f);
  EXPECT_EQ(hp->rope_scaling, RopeScaling::kNone);
  EXPECT_EQ(hp->n_vocab, 0);
  EXPECT_EQ(hp->sliding_window, 0);
  EXPECT_EQ(hp->norm_eps, 1e-5f);
}

TEST(HyperParameters, EverythingGiven) {
  GgufHeader header = sound_header();
  header.metadata["general.name"] = std::string("A model");
  header.metadata["llama.vocab_size"] = uint64_t{1000};
  header.metadata["llama.attention.head_count_kv"] = int64_t{2};
  header.metadata["llama.attention.key_length"] = uint64_t{32};
  header.metadata["llama.attention.value_length"] = uint64_t{32};
  header.metadata["llama.attention.sliding_window"] = uint64_t{4096};
  header.metadata["llama.rope.dimension_count"] = uint64_t{8};
  header.metadata["llama.rope.freq_base"] = 500000.0;
  header.metadata["llama.rope.scaling.type"] = std::string("linear");
  header.metadata["llama.rope.scaling.factor"] = 4.0;
  header.metadata["llama.expert_count"] = uint64_t{0};
  const auto hp = read_hyper_parameters(header);
  ASSERT_TRUE(hp) << hp.error().message;
  EXPECT_EQ(hp->name, "A model");
  EXPECT_EQ(hp->n_vocab, 1000);
  EXPECT_EQ(hp->n_kv_heads, 2);
  EXPECT_EQ(hp->head_dim, 32);
  EXPECT_EQ(hp->q_width(), 128);
  EXPECT_EQ(hp->kv_width(), 64);
  EXPECT_EQ(hp->sliding_window, 4096);
  EXPECT_EQ(hp->rope_dim, 8);
  EXPECT_EQ(hp->rope_base, 500000.0f);
  EXPECT_EQ(hp->rope_scaling, RopeScaling::kLinear);
  EXPECT_EQ(hp->rope_scale_factor, 4.0f);
}

TEST(HyperParameters, OldNameOfLinearScaling) {
  GgufHeader header = sound_header();
  header.metadata["llama.rope.scale_linear"] = 2.0;
  const auto hp = read_hyper_parameters(header);
  ASSERT_TRUE(hp) << hp.error().message;
  EXPECT_EQ(hp->rope_scaling, RopeScaling::kLinear);
  EXPECT_EQ(hp->rope_scale_factor, 2.0f);
}

TEST(HyperParameters, EveryRequiredKeyIsMissedByName) {
  for (const auto& [key, value] : sound_header().metadata) {
    GgufHeader header = sound_header();
    header.metadata.erase(key);
    const auto hp = read_hyper_parameters(header);
    ASSERT_FALSE(hp) << key;
    EXPECT_EQ(hp.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(hp.error().message, HasSubstr(key));
  }
}

struct Wrong {
  const char* name;
  const char* key;  // without "llama." unless it has a general one
  GgufValue value;
  const char* message;
  ErrorCode code = ErrorCode::kInvalidData;
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongHyperParameters : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongHyperParameters, IsRefused) {
  GgufHeader header = sound_header();
  const std::string key = GetParam().key;
  header.metadata[key.compare(0, 8, "general.") == 0 ? key : "llama." + key] = GetParam().value;
  const auto hp = read_hyper_parameters(header);
  ASSERT_FALSE(hp);
  EXPECT_EQ(hp.error().code, GetParam().code) << hp.error().message;
  EXPECT_THAT(hp.error().message, HasSubstr(GetParam().message));
}

const Wrong kWrong[] = {
    {"Architecture", "general.architecture", std::string("mamba"), "supported: llama",
     ErrorCode::kUnsupported},
    {"ArchitectureKind", "general.architecture", uint64_t{1}, "not a string"},
    {"NoHeads", "attention.head_count", uint64_t{0}, "head_count' is 0"},
    {"HeadsDoNotDivide", "attention.head_count", uint64_t{5}, "not a multiple of the 5 heads"},
    {"MoreHeadsThanWidth", "attention.head_count", uint64_t{128}, "not a multiple"},
    {"OddHead", "attention.head_count", uint64_t{64}, "heads of 1 dimensions"},
    {"MoreKvHeads", "attention.head_count_kv", uint64_t{8}, "cannot share 8 KV heads"},
    {"KvHeadsDoNotDivide", "attention.head_count_kv", uint64_t{3}, "cannot share 3 KV heads"},
    {"NoKvHeads", "attention.head_count_kv", uint64_t{0}, "head_count_kv' is 0"},
    {"NegativeHeads", "attention.head_count", int64_t{-4}, "negative"},
    {"HeadDim0", "attention.key_length", uint64_t{0}, "key_length' is 0"},
    {"OddHeadDim", "attention.key_length", uint64_t{15}, "heads of 15 dimensions"},
    {"UnequalHeadDims", "attention.value_length", uint64_t{8}, "values 8", ErrorCode::kUnsupported},
    {"NoLayers", "block_count", uint64_t{0}, "block_count' is 0"},
    {"TooManyLayers", "block_count", uint64_t{1} << 31, "2147483648"},
    {"NoWidth", "embedding_length", uint64_t{0}, "embedding_length' is 0"},
    {"TooWide", "embedding_length", ~uint64_t{0}, "18446744073709551615"},
    {"NoMlp", "feed_forward_length", uint64_t{0}, "feed_forward_length' is 0"},
    {"NoContext", "context_length", uint64_t{0}, "context_length' is 0"},
    {"OddRope", "rope.dimension_count", uint64_t{7}, "is 7"},
    {"NoRope", "rope.dimension_count", uint64_t{0}, "is 0"},
    {"RopeBeyondHead", "rope.dimension_count", uint64_t{18}, "is 18"},
    {"RopeBase0", "rope.freq_base", 0.0, "freq_base"},
    {"RopeBaseInfinite", "rope.freq_base", std::numeric_limits<double>::infinity(), "freq_base"},
    {"EpsNaN", "attention.layer_norm_rms_epsilon", std::numeric_limits<double>::quiet_NaN(),
     "epsilon' is nan"},
    {"Eps0", "attention.layer_norm_rms_epsilon", 0.0, "epsilon' is 0"},
    {"EpsNegative", "attention.layer_norm_rms_epsilon", -1e-5, "epsilon' is -1e-05"},
    {"EpsAsInteger", "attention.layer_norm_rms_epsilon", uint64_t{1}, "not a float"},
    {"Yarn", "rope.scaling.type", std::string("yarn"), "'yarn'", ErrorCode::kUnsupported},
    {"ScaleNaN", "rope.scaling.factor", std::numeric_limits<double>::quiet_NaN(),
     "rope.scaling.factor"},
    {"Experts", "expert_count", uint64_t{8}, "8 experts", ErrorCode::kUnsupported},
    {"AttentionScale", "attention.scale", 0.5, "attention.scale", ErrorCode::kUnsupported},
    {"NotCausal", "attention.causal", false, "causal", ErrorCode::kUnsupported},
};
INSTANTIATE_TEST_SUITE_P(Keys, WrongHyperParameters, ::testing::ValuesIn(kWrong),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace troika::model
