#include "troika/model/shape_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace troika::model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json shape() {
  for (const EmbeddedJson& entry : embedded_shapes()) {
    if (entry.name == "llama-3.2-1b") return json::parse(*entry.json);
  }
  ADD_FAILURE();
  return {};
}

std::string refusal(const json& value) {
  const auto read = shape_from_json(value.dump());
  if (read) return "accepted";
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidData);
  return read.error().message;
}

TEST(ShapeCatalogue, EveryFileReadsAndIsKnownByItsName) {
  ASSERT_EQ(known_shapes().size(), embedded_shapes().size());
  for (const EmbeddedJson& entry : embedded_shapes()) {
    const auto read = shape_from_json(*entry.json);
    ASSERT_TRUE(read.has_value()) << entry.name << ": " << read.error().message;
    EXPECT_EQ(read->name, entry.name);
    ASSERT_TRUE(parse_shape(entry.name).has_value());
  }
  for (const char* name :
       {"llama-3-8b", "llama-3.2-3b", "llama-3.2-1b", "llama-2-7b", "internlm2-1.8b",
        "phi-3.5-mini", "qwen2.5-14b", "llama-3-70b", "smollm2-135m"}) {
    EXPECT_TRUE(parse_shape(name).has_value()) << name;
  }
  EXPECT_EQ(parse_shape("Llama-3-70B")->n_layers, 80);
  EXPECT_EQ(parse_shape("llama-3.2-1b")->llama3_factor, 32);
}

TEST(ShapeCatalogue, WhatCannotBeIsRefusedByItsField) {
  const json whole = shape();
  for (const auto& [key, value] : whole.items()) {
    json broken = shape();
    broken.erase(key);
    if (key != "llama3_rope_factor") {
      EXPECT_THAT(refusal(broken), HasSubstr(key + " is missing"));
    }
    broken = shape();
    broken[key] = json::array();
    EXPECT_THAT(refusal(broken), HasSubstr("shape: " + key + " is an array")) << key;
  }
  struct Case {
    const char* key;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"experts", 8, "unknown field \"experts\""},
      {"hidden", -1, "hidden size is -1"},
      {"layers", 1e9, "layers is 1"},
      {"layers", 5000, "layers is 5000"},
      {"kv_heads", 5, "not a multiple of 5 KV heads"},
      {"vocabulary", uint64_t{1} << 63, "vocabulary"},
      {"rope_base", -1, "rope_base is -1"},
      {"norm_eps", 0, "norm_eps is 0"},
      {"tied", 1, "tied is 1, not true or false"},
      {"name", "", "name is"},
  };
  for (const Case& c : cases) {
    json broken = shape();
    broken[c.key] = c.value;
    EXPECT_THAT(refusal(broken), HasSubstr(c.message)) << c.key;
  }
  json other = shape();
  other["version"] = 2;
  EXPECT_EQ(shape_from_json(other.dump()).error().code, ErrorCode::kUnsupported);
}

TEST(ShapeCatalogue, NoBytesHarmTheReader) {
  EXPECT_FALSE(shape_from_json("").has_value());
  EXPECT_FALSE(shape_from_json("[]").has_value());
  EXPECT_FALSE(shape_from_json(std::string(100'000, '[')).has_value());
  EXPECT_FALSE(shape_from_json(std::string(10'000, '[')).has_value());
  const std::string sound = shape().dump();
  for (size_t n = 0; n < sound.size(); ++n) {
    EXPECT_FALSE(shape_from_json(sound.substr(0, n)).has_value());
  }
}

}  // namespace
}  // namespace troika::model
