#include "troika/published/paper.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/repository.h"
#include "troika/published/catalogue.h"
#include "troika/soc/catalogue.h"

namespace troika::published {
namespace {

using nlohmann::json;

json small_paper() {
  return json::parse(R"({
    "version": 1, "paper": "some", "title": "Some",
    "cases": [
      {"case": "a", "metric": "prefill_gain",
       "input": {"soc": "chip", "shapes": ["llama-3-8b"], "prompts": [256], "strategy": "troika"},
       "against": {"strategy": "layer", "sync": "blocking"},
       "published": 1.5, "published_to": 2, "unit": "times", "mark": "printed",
       "calibrated": false, "source": "somewhere"},
      {"case": "b", "metric": "operator_us",
       "input": {"soc": "chip", "weight": "4096x14336", "tokens": 7, "strategy": "layer"},
       "published": 10, "unit": "us", "mark": "derived", "calibrated": true, "source": "there"},
      {"case": "c", "metric": "memory_gbps", "input": {"soc": "chip", "units": ["gpu"]},
       "published": 0, "unit": "GB/s", "mark": "printed", "calibrated": false, "described": true,
       "left_out": "because", "source": "there"}]})");
}

std::string refusal(const json& paper) {
  const auto read = from_json(paper.dump());
  return read ? "" : read.error().message;
}

TEST(Paper, IsReadWithWhatARunIsComparedTo) {
  const auto paper = from_json(small_paper().dump());
  ASSERT_TRUE(paper.has_value()) << paper.error().message;
  ASSERT_EQ(paper->cases.size(), 3u);
  const Case& gain = paper->cases[0];
  EXPECT_EQ(gain.metric, Metric::kPrefillGain);
  EXPECT_EQ(gain.input.sync, "queue");
  ASSERT_TRUE(gain.against.has_value());
  EXPECT_EQ(gain.against->strategy, "layer");
  EXPECT_EQ(gain.against->sync, "blocking");
  EXPECT_EQ(gain.against->soc, "chip");
  EXPECT_EQ(gain.against->prompts, std::vector<int64_t>{256});
  EXPECT_EQ(gain.published_to, 2);
  EXPECT_EQ(paper->cases[1].input.outputs, 4096);
  EXPECT_EQ(paper->cases[1].input.inputs, 14336);
  EXPECT_EQ(paper->cases[2].left_out, "because");
  EXPECT_EQ(json::parse(gain.input_text), small_paper()["cases"][0]["input"]);
}

TEST(Paper, WhatCannotBeIsRefusedWithItsPath) {
  struct Change {
    const char* pointer;
    json value;
    const char* message;
  };
  const Change changes[] = {
      {"/cases/0/case", "b", "paper.cases[1].case is b"},
      {"/cases/0/metric", "speed", "paper.cases[0].metric"},
      {"/cases/0/unit", "us", "paper.cases[0].unit"},
      {"/cases/0/published", -1, "paper.cases[0].published"},
      {"/cases/0/published", "1", "paper.cases[0].published"},
      {"/cases/0/published", 1e300, "paper.cases[0].published"},
      {"/cases/0/published_to", 1, "paper.cases[0].published_to"},
      {"/cases/0/source", "", "paper.cases[0].source"},
      {"/cases/0/mark", "guessed", "paper.cases[0].mark"},
      {"/cases/0/calibrated", 1, "paper.cases[0].calibrated"},
      {"/cases/0/input/prompts/0", 0, "paper.cases[0].input.prompts[0]"},
      {"/cases/0/input/prompts/0", 1e9, "paper.cases[0].input.prompts[0]"},
      {"/cases/0/input/prompts", json::array(), "paper.cases[0].input.prompts"},
      {"/cases/0/input/shapes/0", "a b", "paper.cases[0].input.shapes[0]"},
      {"/cases/0/input/weight", "1x1", "paper.cases[0].input has an unknown field \"weight\""},
      {"/cases/0/against/sync", "slow", "paper.cases[0].against.sync"},
      {"/cases/0/input/load", json{{"unit", "gpu"}, {"part", 1}, {"gbps", 1}},
       "paper.cases[0].input.load.part"},
      {"/cases/1/against", json::object(), "paper.cases[1] has an unknown field \"against\""},
      {"/cases/1/input/weight", "4096", "paper.cases[1].input.weight"},
      {"/cases/1/input/weight", "0x4096", "paper.cases[1].input.weight"},
      {"/cases/1/input/weight", "99999999999999999999x1", "paper.cases[1].input.weight"},
      {"/cases/1/input/weight", "16x16x", "paper.cases[1].input.weight"},
      {"/cases/1/input/tokens", 65537, "paper.cases[1].input.tokens"},
      {"/cases/1/described", true, "paper.cases[1].described"},
      {"/cases/2/input/strategy", "layer",
       "paper.cases[2].input has an unknown field \"strategy\""},
      {"/more", 1, "paper has an unknown field \"more\""},
  };
  for (const Change& change : changes) {
    json paper = small_paper();
    paper[json::json_pointer(change.pointer)] = change.value;
    const std::string message = refusal(paper);
    EXPECT_NE(message.find(change.message), std::string::npos)
        << change.pointer << " = " << change.value << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Paper, WhatIsMissingIsNamed) {
  const json paper = small_paper();
  for (size_t i = 0; i < paper["cases"].size(); ++i) {
    for (const auto& [key, value] : paper["cases"][i].items()) {
      if (key == "published_to" || key == "described" || key == "left_out") continue;
      json less = paper;
      less["cases"][i].erase(key);
      EXPECT_NE(refusal(less).find(fmt::format("paper.cases[{}].{} is missing", i, key)),
                std::string::npos)
          << refusal(less);
    }
  }
}

TEST(Paper, NoBytesHarmTheReader) {
  const std::string sound = small_paper().dump();
  EXPECT_FALSE(from_json("").has_value());
  EXPECT_FALSE(from_json(std::string(2'000'000, ' ')).has_value());
  EXPECT_FALSE(from_json(std::string(100'000, '[')).has_value());
  for (size_t n = 0; n < sound.size(); n += 3) {
    EXPECT_FALSE(from_json(sound.substr(0, n)).has_value());
  }
  json other = small_paper();
  other["version"] = 2;
  EXPECT_EQ(from_json(other.dump()).error().code, ErrorCode::kUnsupported);
}

TEST(Catalogue, HasThePapersAndNamesThem) {
  const auto all = find("all");
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_EQ(all->size(), papers().size());
  for (const Paper& paper : *all) {
    const auto one = find(paper.name);
    ASSERT_TRUE(one.has_value()) << paper.name;
    EXPECT_EQ(one->front().cases.size(), paper.cases.size());
  }
  const auto unknown = find("none");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("heteroinfer, heteromosaic"), std::string::npos);
}

std::set<std::string> calibrated(const char* paper) {
  std::set<std::string> names;
  const auto found = find(paper);
  if (!found) return names;
  for (const Case& one : found->front().cases) {
    if (one.calibrated) names.insert(one.name);
  }
  return names;
}

// The figures that a fit may see were fixed before anything was fitted.
TEST(Catalogue, TheCalibrationSetIsTheOneThatWasFixed) {
  std::set<std::string> expected = {"bandwidth-gpu",     "bandwidth-npu",      "bandwidth-gpu-npu",
                                    "bandwidth-all",     "build-135",          "build-1000",
                                    "prefill-256",       "decode-256",         "energy-over-gpu",
                                    "energy-over-layer", "power-layer-prefill"};
  // The table of operators: times, of rows for a range of lengths in its middle; what was chosen.
  for (const char* row :
       {"4096x4096-1", "28672x4096-1", "4096x14336-1", "4096x4096-128", "4096x4096-224",
        "4096x4096-256", "4096x4096-264", "4096x14336-256", "4096x14336-320"}) {
    expected.insert(fmt::format("operator-{}-gpu", row));
    expected.insert(fmt::format("operator-{}-npu", row));
  }
  for (const char* row : {"4096x4096-1", "28672x4096-1", "4096x14336-1", "4096x4096-128",
                          "4096x4096-193", "4096x4096-255", "4096x4096-256", "4096x4096-257",
                          "4096x4096-272", "4096x14336-256", "4096x14336-257", "4096x14336-384"}) {
    expected.insert(fmt::format("split-{}", row));
  }
  EXPECT_EQ(calibrated("heteroinfer"), expected);

  expected.clear();
  for (const char* chip : {"krkn", "stxp", "stxh"}) {
    for (const char* other : {"gpu", "npu", "heteroinfer"}) {
      expected.insert(fmt::format("gain-{}-over-{}", chip, other));
    }
    expected.insert(fmt::format("balance-{}", chip));
    expected.insert(fmt::format("ttft-{}-llama.cpp-2048", chip));
  }
  for (const char* chip : {"krkn", "stxh"}) {
    expected.insert(fmt::format("ttft-{}-heteromosaic-2048", chip));
    for (const char* system : {"llama.cpp", "npu", "heteromosaic"}) {
      expected.insert(fmt::format("decode-{}-{}-1024", chip, system));
    }
  }
  for (const char* name :
       {"power-stxh-npu", "power-stxh-gpu", "power-small-gpu", "power-small-npu"}) {
    expected.insert(name);
  }
  EXPECT_EQ(calibrated("heteromosaic"), expected);
  EXPECT_TRUE(calibrated("agent-xpu").empty());
  EXPECT_TRUE(calibrated("llama-cpp").empty());
}

// What a JSON schema says about objects: their fields, which must be there, and values of a choice.
void check_schema(const json& schema, const json& root, const json& value, const std::string& at) {
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    check_schema(root.at(json::json_pointer(ref.substr(1))), root, value, at);
    return;
  }
  if (schema.contains("enum")) {
    const auto& allowed = schema["enum"];
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), value), allowed.end()) << at;
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& entry : value) check_schema(schema["items"], root, entry, at + "[]");
  }
  if (!value.is_object()) return;
  for (const auto& [key, child] : value.items()) {
    ASSERT_TRUE(schema["properties"].contains(key)) << at << "." << key;
    check_schema(schema["properties"][key], root, child, at + "." + key);
  }
  for (const json& key : schema.value("required", json::array())) {
    EXPECT_TRUE(value.contains(key.get<std::string>())) << at << "." << key;
  }
}

TEST(Catalogue, TheSchemaAllowsThePapers) {
  std::ifstream in(repository_path("published/schema.json"));
  const json schema = json::parse(in);
  for (const EmbeddedJson& entry : papers()) {
    check_schema(schema, schema, json::parse(*entry.json), std::string(entry.name));
  }
}

}  // namespace
}  // namespace troika::published
