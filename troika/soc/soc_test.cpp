#include "troika/soc/soc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/repository.h"
#include "troika/soc/bandwidth.h"
#include "troika/soc/catalogue.h"
#include "troika/soc/execution.h"

namespace troika::soc {
namespace {

using nlohmann::json;

json description(const std::string& name = "snapdragon-8-gen-3") {
  for (const Description& entry : descriptions()) {
    if (entry.name == name) return json::parse(*entry.json);
  }
  ADD_FAILURE() << name;
  return {};
}

Figure number(double value) { return {value, FigureKind::kFitted, ""}; }

json figure(double value, const char* unit) {
  return {{"value", value}, {"unit", unit}, {"kind", "fitted"}, {"source", "for the test"}};
}

// With every field that a description may have.
json full_description() {
  json soc = description();
  soc["memory"]["capacity"] = figure(16, "GB");
  soc["pass_overhead"] = figure(500, "us");
  soc["stored_weights"] = {{"bits", figure(4.25, "bits")}, {"head_bits", figure(16, "bits")}};
  soc["turbo"] = {
      {"speed", figure(1.5, "times")}, {"budget", figure(20, "J")}, {"power", figure(2, "times")}};
  json& gpu = soc["units"][1];
  gpu["device"] = "opencl";
  gpu["cache"] = {{"size", figure(12, "MB")}, {"bandwidth", figure(200, "GB/s")}};
  gpu["elementwise_traffic"] = figure(1.3, "times");
  gpu["operator_overhead"] = figure(3, "us");
  gpu["speed_among_others"] = figure(0.8, "times");
  gpu["turbo_speed"] = figure(1.2, "times");
  gpu["power"]["waiting"] = figure(0.4, "W");
  gpu["paths"][0]["row_tile"] = figure(128, "tokens");
  gpu["paths"][0]["rate_by_tokens"] = {{"tokens", {1, 17, 64}},
                                       {"values", {0.1, 0.25, 0.5}},
                                       {"unit", "TFLOPS"},
                                       {"kind", "measured"},
                                       {"source", "for the test"}};
  gpu["paths"][0]["overhead"] = figure(4, "us");
  gpu["attention_stream"] = figure(20, "GB/s");
  json& npu = soc["units"][2];
  npu["drained_stall"] = figure(0.2, "times");
  npu["queue_depth"] = figure(4, "tasks");
  npu["datapath_switch"] = figure(100, "us");
  npu["weights_switch"] = figure(5, "us");
  npu["session_memory"] = figure(3.5, "GB");
  npu["sessions"] = figure(4, "sessions");
  json slow_gpu = gpu;
  slow_gpu["paths"][0]["rate"]["value"] = 0.5;
  soc["stacks"] = {{{"name", "plain"},
                    {"description", "other software, on the GPU alone"},
                    {"sync", soc["sync"]},
                    {"pass_overhead", figure(700, "us")},
                    {"stored_weights", soc["stored_weights"]},
                    {"units", {"cpu", slow_gpu}}}};
  return soc;
}

std::string refusal(const json& value) {
  const auto soc = from_json(value.dump());
  if (soc) return "accepted";
  EXPECT_EQ(soc.error().code, ErrorCode::kInvalidData);
  return soc.error().message;
}

TEST(Soc, EveryDescriptionReadsAndIsTheSameWhenWrittenAndReadAgain) {
  ASSERT_GE(descriptions().size(), 2u);
  for (const Description& entry : descriptions()) {
    const auto soc = find(entry.name);
    ASSERT_TRUE(soc.has_value()) << soc.error().message;
    EXPECT_EQ(soc->name, entry.name);
    const auto again = from_json(to_json(*soc));
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(to_json(*again), to_json(*soc));
    EXPECT_EQ(json::parse(to_json(*soc)), json::parse(*entry.json));
  }
}

TEST(Soc, EveryOptionalFieldIsReadAndWritten) {
  const json whole = full_description();
  const auto soc = from_json(whole.dump());
  ASSERT_TRUE(soc.has_value()) << soc.error().message;
  EXPECT_EQ(json::parse(to_json(*soc)), whole);
  EXPECT_EQ(soc->memory.capacity->value, 16);
  EXPECT_EQ(soc->stored_weights->head_bits.value, 16);
  EXPECT_EQ(soc->turbo->power->value, 2);
  EXPECT_EQ(soc->units[1].cache->size.value, 12);
  EXPECT_EQ(soc->units[1].paths[0].row_tile->value, 128);
  EXPECT_EQ(soc->units[2].queue_depth->value, 4);
}

TEST(Soc, AStackHasItsOwnUnitsAndFacts) {
  const auto soc = from_json(full_description().dump());
  ASSERT_TRUE(soc.has_value());
  const auto plain = with_stack(*soc, "plain");
  ASSERT_TRUE(plain.has_value());
  ASSERT_EQ(plain->units.size(), 2u);
  EXPECT_EQ(plain->stack, "other software, on the GPU alone");
  EXPECT_EQ(plain->units[0].name, "cpu");
  EXPECT_EQ(plain->units[1].paths[0].rate.value, 0.5);
  EXPECT_EQ(plain->pass_overhead->value, 700);
  EXPECT_TRUE(plain->memory.together.empty());  // of GPU and NPU
  EXPECT_TRUE(from_json(to_json(*plain)).has_value());
  EXPECT_EQ(to_json(*with_stack(*soc, "default")), to_json(*soc));
  const auto none = with_stack(*soc, "vulkan");
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message.find("stacks: default, plain"), std::string::npos);
}

TEST(Execution, ARowTileOfAPathAndTheOverheadCount) {
  Unit unit;
  unit.bandwidth.value = 100;
  Path path;
  path.types = {"w4a16"};
  path.rate.value = 1;
  unit.paths = {path};
  const Product product{129, 1024, 1024, "w4a16", 4, false};
  const auto plain = product_work(unit, product);
  unit.paths[0].row_tile = number(128);
  unit.operator_overhead = number(9);
  const auto tiled = product_work(unit, product);
  EXPECT_DOUBLE_EQ(tiled->compute_us, plain->compute_us * 256 / 129);
  EXPECT_DOUBLE_EQ(tiled->work_us(), 9 + tiled->compute_us);
  EXPECT_EQ(tiled->path, 0);
  EXPECT_DOUBLE_EQ(elementwise_work(unit, 1e6).work_us(), 9 + 10);
}

TEST(Execution, ARateByTokensIsAsGivenThereAndTimeIsLinearBetween) {
  Unit unit;
  unit.bandwidth.value = 1e4;
  Path path;
  path.types = {"w4a16"};
  path.rate = number(0.5);
  path.rate_by_tokens = FigureCurve{{2, 4, 10}, {0.1, 0.4, 0.25}, FigureKind::kMeasured, "test"};
  path.overhead = number(4);
  unit.paths = {path};
  const auto us = [&](int64_t rows) {
    const auto work = product_work(unit, {rows, 1000, 1000, "w4a16", 4, false});
    EXPECT_DOUBLE_EQ(work->overhead_us, 4);
    return work->compute_us;
  };
  EXPECT_DOUBLE_EQ(us(2), 40);
  EXPECT_DOUBLE_EQ(us(4), 20);
  EXPECT_DOUBLE_EQ(us(10), 80);
  EXPECT_DOUBLE_EQ(us(7), 50);
  EXPECT_DOUBLE_EQ(us(1), 20);    // the rate of the first
  EXPECT_DOUBLE_EQ(us(20), 160);  // and of the last
}

TEST(Execution, AttentionOfFewRowsTakesInKeysAndValues) {
  Unit unit;
  unit.bandwidth.value = 100;
  unit.attention_rate = number(1);
  EXPECT_DOUBLE_EQ(attention_work(unit, 1e6, 1e6)->work_us(), 10);
  unit.attention_stream = number(20);
  EXPECT_DOUBLE_EQ(attention_work(unit, 1e6, 1e6)->work_us(), 50);
  EXPECT_TRUE(attention_work(unit, 1e6, 1e6)->memory_bound());
  EXPECT_DOUBLE_EQ(attention_work(unit, 1e8, 1e6)->work_us(), 200);
}

TEST(Execution, WhatFitsTheCacheDoesNotReachTheMemory) {
  Unit unit;
  unit.bandwidth.value = 100;
  unit.elementwise_traffic = number(2);
  unit.attention_rate = number(1);
  unit.cache = Cache{number(1), number(400)};
  Path path;
  path.types = {"w4a16"};
  path.rate.value = 1;
  unit.paths = {path};
  // 0.8 MB of traffic fit, 1.2 MB do not.
  EXPECT_DOUBLE_EQ(elementwise_work(unit, 4e5).work_us(), 2);
  EXPECT_DOUBLE_EQ(elementwise_work(unit, 4e5).bytes, 0);
  EXPECT_DOUBLE_EQ(elementwise_work(unit, 6e5).work_us(), 12);
  EXPECT_DOUBLE_EQ(elementwise_work(unit, 6e5).bytes, 1.2e6);
  EXPECT_DOUBLE_EQ(attention_work(unit, 0, 6e5)->bytes, 0);  // without that traffic
  Product product{100, 1000, 1000, "w4a16", 4, false};
  EXPECT_DOUBLE_EQ(product_work(unit, product)->bytes, 5e5);
  product.m = 1000;
  EXPECT_DOUBLE_EQ(product_work(unit, product)->bytes, 5e5 + 4e6);
}

TEST(Soc, AnUnknownChipIsNotFoundAndTheErrorListsTheKnown) {
  const auto soc = find("z80");
  ASSERT_FALSE(soc.has_value());
  EXPECT_EQ(soc.error().code, ErrorCode::kNotFound);
  EXPECT_NE(soc.error().message.find("core-ultra-5-125h, core-ultra-7-258v"), std::string::npos);
}

// Every figure of a description, by its JSON pointer.
void collect_figures(const json& value, const json::json_pointer& at,
                     std::vector<json::json_pointer>& out) {
  if (value.is_object() && value.contains("unit")) out.push_back(at);
  if (!value.is_structured()) return;
  for (const auto& [key, child] : value.items()) {
    const json::json_pointer below =
        value.is_array() ? at / static_cast<size_t>(std::stoul(key)) : at / key;
    collect_figures(child, below, out);
  }
}

TEST(Soc, EveryFigureNeedsUnitKindAndSourceAndBounds) {
  const json whole = full_description();
  std::vector<json::json_pointer> figures;
  collect_figures(whole, json::json_pointer(), figures);
  ASSERT_GT(figures.size(), 30u);
  for (const auto& figure : figures) {
    for (const char* field : {"unit", "kind", "source"}) {
      json broken = whole;
      broken[figure].erase(field);
      EXPECT_NE(refusal(broken).find(std::string(field) + " is missing"), std::string::npos)
          << figure.to_string();
      broken = whole;
      broken[figure][field] = "";
      EXPECT_NE(refusal(broken).find(std::string(".") + field + " is \"\""), std::string::npos)
          << figure.to_string();
    }
    json broken = whole;
    broken[figure]["note"] = 1;
    EXPECT_NE(refusal(broken).find("unknown field \"note\""), std::string::npos);
    if (!whole[figure].contains("value")) continue;
    for (const json& value : {json(-1), json("x"), json(1e300), json()}) {
      broken = whole;
      broken[figure]["value"] = value;
      EXPECT_NE(refusal(broken).find(".value is "), std::string::npos) << figure.to_string();
    }
  }
}

TEST(Soc, ErrorsNameThePathOfTheField) {
  struct Case {
    const char* pointer;
    json value;
    const char* message;
  };
  const Case cases[] = {
      {"/speed", 3, "soc has an unknown field \"speed\""},
      {"/units/2/paths/1/decode", 3, "soc.units[2].paths[1] has an unknown field \"decode\""},
      {"/units/1/name", "npu", "soc.units[2].name is npu, as of another unit"},
      {"/units/1/name", "a b", "soc.units[1].name is \"a b\", not a name"},
      {"/units/1/kind", "tpu", "soc.units[1].kind is \"tpu\", not one of cpu, gpu, npu"},
      {"/units/1/bandwidth/value", 65, "soc.units[1].bandwidth is 65 GB/s, more than"},
      {"/memory/reachable/value", 70, "soc.memory.reachable is 70 GB/s, more than the peak, 68"},
      {"/memory/together/0/bandwidth/value", 43, "soc.memory.together[0].bandwidth is 43 GB/s"},
      {"/memory/together/0/units/1", "tpu", "soc.memory.together[0].units: no unit is called tpu"},
      {"/memory/together/0/units/1", "gpu", "soc.memory.together[0].units must be two or more"},
      {"/sync/fast/value", 401, "soc.sync.fast is 401 us, more than soc.sync.blocking, 400"},
      {"/units/2/law", "linear", "soc.units[2] has an unknown field \"static_graphs\""},
      {"/units/2/law", "quanta", "soc.units[2].quanta is missing"},
      {"/units/2/paths/1/from_tokens", 1, "soc.units[2].paths[0] and paths[1] serve the same"},
      {"/units/2/paths/1/from_tokens", 0, "soc.units[2].paths[1].from_tokens is 0, not a whole"},
      {"/units/2/paths/1/types/0", "w3", "soc.units[2].paths[1].types[0] is \"w3\", not w4a16"},
      {"/units/2/static_graphs/tile/value", 0.5, "tile.value is 0.5, not a whole number"},
      {"/units/2/static_graphs/standard_lengths/values/1", 64, "values[1] is 64, not above"},
      {"/units/1/cache/bandwidth/value", 20, "soc.units[1].cache.bandwidth is 20 GB/s, less than"},
      {"/units/2/paths/0/stream/value", 43, "soc.units[2].paths[0].stream is 43 GB/s, more than"},
      {"/units/1/paths/0/rate_by_tokens/values/1", 1e4, "rate_by_tokens.values[1] is 10000 TFLOPS"},
      {"/units/1/paths/0/rate_by_tokens/values/1", 0, "rate_by_tokens.values[1] is 0, not a"},
      {"/units/1/paths/0/rate_by_tokens/tokens/1", 1, "rate_by_tokens.tokens[1] is 1, not above"},
      {"/units/1/paths/0/rate_by_tokens/tokens/1", 1.5, "rate_by_tokens.tokens[1] is 1.5, not a"},
      {"/units/1/paths/0/rate_by_tokens/tokens", {1, 2}, "rate_by_tokens has 2 tokens, but 3"},
      {"/units/1/paths/0/rate_by_tokens/tokens", json::array(), "tokens is not an array of 1 to"},
      {"/units/1/paths/0/rate_by_tokens", 3, "rate_by_tokens is not an object"},
      {"/units/1/paths/0/rate_by_tokens/model", "x", "rate_by_tokens has an unknown field"},
      {"/units/1/attention_stream/value", 60, "soc.units[1].attention_stream is 60 GB/s, more"},
      {"/units/2/attention_stream", figure(9, "GB/s"), "soc.units[2].attention_stream needs"},
      {"/units/1/sessions", figure(2, "sessions"), "soc.units[1].sessions needs"},
      {"/stacks/0/units/0", "dsp", "soc.stacks[0].units[0]: no unit is called dsp"},
      {"/stacks/0/units/0", "gpu", "soc.stacks[0].units[1] is gpu, as another one"},
      {"/stacks/0/units", json::array({"cpu"}), "soc.stacks[0].units has no unit with paths"},
      {"/stacks/0/units/0", 3, "soc.stacks[0].units[0] is 3, not a name"},
      {"/stacks/0/name", "default", "soc.stacks[0].name is default, as of another stack"},
      {"/stacks/0/units/1/bandwidth/value", 62, "soc.stacks[0].units[1].bandwidth is 62 GB/s"},
      {"/stacks/0/sync/fast/value", 500, "soc.stacks[0].sync.fast is 500 us, more than"},
      {"/stacks/0/memory", 1, "soc.stacks[0] has an unknown field \"memory\""},
      {"/units", json::array(), "soc.units is not an array of 1 to 8 entries"},
      {"/units/1/description", "caf\xc3\xa9", "soc.units[1].description is"},
  };
  for (const Case& c : cases) {
    json broken = full_description();
    broken[json::json_pointer(c.pointer)] = c.value;
    EXPECT_NE(refusal(broken).find(c.message), std::string::npos)
        << c.pointer << ": " << refusal(broken);
  }
}

TEST(Soc, NoBytesHarmTheReader) {
  const std::string sound = description().dump();
  EXPECT_FALSE(from_json("").has_value());
  EXPECT_FALSE(from_json(std::string(2'000'000, ' ')).has_value());
  EXPECT_FALSE(from_json(std::string(100'000, '[')).has_value());
  EXPECT_FALSE(from_json("{\"version\": " + std::string(1000, '1') + "}").has_value());
  for (size_t n = 0; n < sound.size(); n += 7) {
    EXPECT_FALSE(from_json(sound.substr(0, n)).has_value());
  }
  const std::string twice = "{\"version\": 1, " + sound.substr(1);
  const auto refused = from_json(twice);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("key \"version\" stands twice"), std::string::npos);
}

TEST(Soc, AnotherVersionIsUnsupported) {
  json other = description();
  other["version"] = 2;
  const auto soc = from_json(other.dump());
  ASSERT_FALSE(soc.has_value());
  EXPECT_EQ(soc.error().code, ErrorCode::kUnsupported);
}

// What a JSON schema says about objects: their fields, and which must be there.
void check_schema(const json& schema, const json& root, const json& value, const std::string& at) {
  if (schema.contains("$ref")) {
    const std::string ref = schema["$ref"];
    ASSERT_EQ(ref.rfind("#/", 0), 0u) << ref;
    check_schema(root.at(json::json_pointer(ref.substr(1))), root, value, at);
    return;
  }
  if (schema.contains("enum")) {
    const auto& allowed = schema["enum"];
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), value), allowed.end()) << at;
  }
  if (schema.contains("const")) {
    EXPECT_EQ(schema["const"], value) << at;
  }
  for (const json& part : schema.value("allOf", json::array())) {
    check_schema(part, root, value, at);
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& entry : value) check_schema(schema["items"], root, entry, at + "[]");
  }
  if (!value.is_object()) return;
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, child] : value.items()) {
    if (properties.contains(key)) {
      check_schema(properties[key], root, child, at + "." + key);
    } else {
      EXPECT_TRUE(schema.value("additionalProperties", true)) << at << "." << key;
    }
  }
  for (const json& key : schema.value("required", json::array())) {
    EXPECT_TRUE(value.contains(key.get<std::string>())) << at << "." << key;
  }
}

TEST(Soc, TheSchemaAllowsTheDescriptions) {
  std::ifstream in(repository_path("socs/schema.json"));
  const json schema = json::parse(in);
  for (const Description& entry : descriptions()) {
    check_schema(schema, schema, json::parse(*entry.json), std::string(entry.name));
  }
  check_schema(schema, schema, full_description(), "full");
}

TEST(SharedBandwidth, GivesWhatIsListedAndNeverMoreThanIsReachable) {
  const auto soc = find("snapdragon-8-gen-3");
  const SharedBandwidth shared(*soc);
  const auto mask = [&](std::initializer_list<const char*> names) {
    uint32_t bits = 0;
    for (const char* name : names) bits |= 1u << *soc->unit(name);
    return bits;
  };
  EXPECT_DOUBLE_EQ(shared.total(mask({"gpu"})), 43.3);
  EXPECT_DOUBLE_EQ(shared.total(mask({"gpu", "npu"})), 59.5);
  EXPECT_DOUBLE_EQ(shared.total(mask({"cpu", "gpu"})), 61.9);
  EXPECT_DOUBLE_EQ(shared.total(mask({"cpu", "gpu", "npu"})), 61.9);
}

TEST(SharedBandwidth, TheSlowdownsOfMatrixVectorProductsOnCoreUltraAreThePublishedOnes) {
  const auto soc = find("core-ultra-5-125h");
  const SharedBandwidth shared(*soc);
  const size_t gpu = *soc->unit("gpu");
  const size_t npu = *soc->unit("npu");
  const double slowdown =
      (soc->units[gpu].bandwidth + soc->units[npu].bandwidth) / shared.total(1u << gpu | 1u << npu);
  EXPECT_GE(slowdown, 1.39);
  EXPECT_LE(slowdown, 1.59);
}

}  // namespace
}  // namespace troika::soc
