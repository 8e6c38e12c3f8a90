#include "troika/plan/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/repository.h"

namespace troika::plan {
namespace {

using graph::Stage;
using nlohmann::json;

Placement whole(Stage stage, int32_t first, int32_t last, const std::string& device) {
  Placement placement;
  placement.stage = stage;
  placement.first_layer = first;
  placement.last_layer = last;
  placement.parts = {{device}};
  return placement;
}

// Every field away from its default.
Placement rich() {
  Placement placement = whole(Stage::kG2, 0, 1, "cpu");
  placement.op = "down";
  placement.chunk = 1;
  placement.cut = Cut::kK;
  placement.parts[0].share = 0.3;
  placement.parts[0].input_stationary = true;
  placement.delay_us = 12.5;
  placement.join_chunks = 3;
  return placement;
}

class PlanTest : public ::testing::Test {
 protected:
  // Two layers.
  PlanTest()
      : model_(*model::Model::load(repository_path("tests/models/q4_1-narrow-mlp.gguf"))),
        graph_(*graph::build(model_)) {}

  Plan sound() const { return single_device_plan(graph_, "cpu", 512, "f32"); }

  // The message of a plan made wrong.
  std::string refused(const std::function<void(Plan&)>& spoil) const {
    Plan plan = sound();
    spoil(plan);
    const Status status = check(plan, graph_);
    if (status) return "accepted";
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidData);
    return status.error().message;
  }

  model::Model model_;
  graph::Graph graph_;
};

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "says: " << (message)

TEST_F(PlanTest, OneDeviceComputesEverything) {
  const Plan plan = sound();
  const Status status = check(plan, graph_);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(plan.bucket(1), &plan.buckets[0]);
  EXPECT_EQ(plan.bucket(512), &plan.buckets[0]);
  EXPECT_EQ(plan.bucket(513), nullptr);
}

TEST_F(PlanTest, LayersMayLieOnDifferentDevices) {
  Plan plan = sound();
  plan.devices = {"a", "b"};
  RowsBucket& bucket = plan.buckets[0];
  bucket.placements.clear();
  for (const Stage stage : {Stage::kInput, Stage::kHead}) {
    bucket.placements.push_back(whole(stage, -1, -1, "a"));
  }
  for (const Stage stage : {Stage::kG1, Stage::kAttention, Stage::kG2}) {
    bucket.placements.push_back(whole(stage, 1, 1, "a"));
    bucket.placements.push_back(whole(stage, 0, 0, "b"));
  }
  const Status status = check(plan, graph_);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  RowsBucket larger = bucket;
  larger.max_rows = 1024;
  plan.buckets.push_back(larger);
  ASSERT_TRUE(check(plan, graph_).has_value());
  EXPECT_EQ(plan.bucket(513), &plan.buckets[1]);
}

TEST_F(PlanTest, WrongPlansAreRefusedWithThePlaceNamed) {
  const auto placements = [](Plan& p) -> std::vector<Placement>& {
    return p.buckets[0].placements;
  };
  std::string m = refused([](Plan& p) { p.model_fingerprint ^= 1; });
  EXPECT_SAYS(m, fmt::format("{:016x}", model_.fingerprint()));
  m = refused([](Plan& p) { p.devices.clear(); });
  EXPECT_SAYS(m, "no device");
  m = refused([](Plan& p) { p.devices.push_back("cpu"); });
  EXPECT_SAYS(m, "\"cpu\" twice");
  m = refused([](Plan& p) { p.buckets.clear(); });
  EXPECT_SAYS(m, "no buckets");
  m = refused([](Plan& p) { p.activations = "f64"; });
  EXPECT_SAYS(m, "\"f64\"");
  m = refused([](Plan& p) { p.kv_type = "q4_0"; });
  EXPECT_SAYS(m, "\"q4_0\"");
  m = refused([&](Plan& p) { placements(p)[1].parts[0].device = "npu"; });
  EXPECT_SAYS(m, "bucket of 512 rows, head: device \"npu\"");
  m = refused([&](Plan& p) { placements(p).erase(placements(p).begin()); });
  EXPECT_SAYS(m, "input is not placed");
  m = refused([&](Plan& p) { placements(p).push_back(placements(p)[0]); });
  EXPECT_SAYS(m, "input is placed twice");
  m = refused([&](Plan& p) { placements(p)[3].last_layer = 0; });
  EXPECT_SAYS(m, "A layer 1 is not placed");
  m = refused([&](Plan& p) { placements(p).push_back(whole(Stage::kG2, 1, 1, "cpu")); });
  EXPECT_SAYS(m, "G2 layer 1 is placed twice");
  m = refused([&](Plan& p) { placements(p)[0].first_layer = 0; });
  EXPECT_SAYS(m, "this stage has no layers");
  m = refused([&](Plan& p) { placements(p)[2].last_layer = 2; });
  EXPECT_SAYS(m, "layers 0 to 2 are not in 0 to 1");
  m = refused([&](Plan& p) { placements(p)[2].last_layer = INT32_MAX; });
  EXPECT_SAYS(m, "are not in 0 to 1");
  m = refused([&](Plan& p) { placements(p)[2].first_layer = -1; });
  EXPECT_SAYS(m, "are not in 0 to 1");
  m = refused(
      [&](Plan& p) { std::swap(placements(p)[2].first_layer, placements(p)[2].last_layer); });
  EXPECT_SAYS(m, "layers 1 to 0");
  const auto with = [&](const std::function<void(Placement&)>& spoil) {
    return refused([&](Plan& p) {
      p.devices = {"cpu", "npu"};
      Placement extra = rich();
      extra.join_chunks = 1;
      extra.parts.push_back({"npu"});
      spoil(extra);
      placements(p).push_back(extra);
    });
  };
  EXPECT_SAYS(with([](Placement& x) { x.op = "down"; }), "accepted");
  EXPECT_SAYS(with([](Placement& x) { x.op = "q"; }), "no such product");
  EXPECT_SAYS(with([](Placement& x) { x.parts[1].device = "cpu"; }), "has two parts");
  EXPECT_SAYS(with([](Placement& x) { x.parts.clear(); }), "0 parts");
  EXPECT_SAYS(with([](Placement& x) { x.parts.resize(17); }), "17 parts");
  EXPECT_SAYS(with([](Placement& x) { x.parts[1].share = 0; }), "share 0 of device");
  EXPECT_SAYS(with([](Placement& x) { x.parts[1].share = -1; }), "share -1 of device");
  EXPECT_SAYS(with([](Placement& x) { x.parts[1].share = std::nan(""); }), "share nan of device");
  EXPECT_SAYS(with([](Placement& x) { x.cut = Cut::kNone; }), "cut none has one part, not 2");
  EXPECT_SAYS(with([](Placement& x) { x.delay_us = -1; }), "a delay of -1 us");
  EXPECT_SAYS(with([](Placement& x) { x.chunk = -2; }), "chunk is not");
  m = refused([&](Plan& p) { placements(p)[3].cut = Cut::kK; });
  EXPECT_SAYS(m, "A layer 0: this stage cannot be cut k-cut");
  m = refused([&](Plan& p) { placements(p)[1].cut = Cut::kActivationCentric; });
  EXPECT_SAYS(m, "head: this stage cannot be cut activation-centric");
  m = refused([](Plan& p) { p.buckets[0].chunks = {0}; });
  EXPECT_SAYS(m, "chunks[0] is 0, not 1 to 16777216 rows");
  m = refused([](Plan& p) {
    p.buckets[0].max_rows = 100'000;
    p.buckets[0].chunks = {1};
  });
  EXPECT_SAYS(m, "more than 256 chunks, the last size, 1, repeating: use larger ones");
  m = refused([](Plan& p) { p.buckets[0].in_flight = -3; });
  EXPECT_SAYS(m, "in_flight is -3, not 0 or more");
  m = refused([](Plan& p) { p.buckets[0].max_rows = 0; });
  EXPECT_SAYS(m, "bucket of 0 rows");
  m = refused([](Plan& p) { p.buckets[0].max_rows = -5; });
  EXPECT_SAYS(m, "bucket of -5 rows");
  m = refused([](Plan& p) { p.buckets[0].max_rows = INT64_MAX; });
  EXPECT_SAYS(m, "bucket of 9223372036854775807 rows");
  m = refused([](Plan& p) { p.buckets.push_back(p.buckets[0]); });
  EXPECT_SAYS(m, "bucket of 512 rows comes after one of 512");
}

TEST_F(PlanTest, AMillionPlacementsAreRefusedQuickly) {
  const std::clock_t start = std::clock();
  const std::string m = refused(
      [&](Plan& p) { p.buckets[0].placements.assign(1'000'000, whole(Stage::kG1, 0, 1, "cpu")); });
  EXPECT_SAYS(m, "1000000 placements");
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 2);
}

TEST_F(PlanTest, JsonGivesTheSamePlanBack) {
  Plan plan = sound();
  plan.devices = {"cpu@0-1", "opencl:pocl@2"};
  plan.kv_type = "f16";
  plan.reason = "because \"it\" is\nfast: \xc3\xa4";
  plan.buckets.push_back(plan.buckets[0]);
  plan.buckets[1].max_rows = 2048;
  plan.buckets[1].chunks = {128, 256};
  plan.buckets[1].in_flight = 2;
  plan.buckets[1].order = {{Stage::kG1, 1, 2, 3, 4}, {std::nullopt, 5, 6, 7, 8}};
  plan.buckets[0].order_rule = OrderRule::kWavefront;
  plan.buckets[1].placements.push_back(rich());
  const std::string text = to_json(plan);
  const auto again = from_json(text);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(to_json(*again), text);
  EXPECT_EQ(again->model_fingerprint, plan.model_fingerprint);
  EXPECT_EQ(again->devices, plan.devices);
  EXPECT_EQ(again->kv_type, "f16");
  EXPECT_EQ(again->reason, plan.reason);
  ASSERT_EQ(again->buckets.size(), 2u);
  EXPECT_EQ(again->buckets[1].max_rows, 2048);
  const auto& placements = again->buckets[1].placements;
  EXPECT_EQ(again->buckets[1].chunks, (std::vector<int64_t>{128, 256}));
  EXPECT_EQ(again->buckets[1].in_flight, 2);
  ASSERT_EQ(placements.size(), 6u);
  EXPECT_EQ(placements[5].op, "down");
  EXPECT_EQ(placements[5].chunk, 1);
  EXPECT_EQ(placements[5].cut, Cut::kK);
  EXPECT_EQ(placements[5].parts[0].share, 0.3);
  EXPECT_TRUE(placements[5].parts[0].input_stationary);
  EXPECT_EQ(placements[5].delay_us, 12.5);
  EXPECT_EQ(placements[5].join_chunks, 3);
  EXPECT_EQ(again->buckets[0].order_rule, OrderRule::kWavefront);
  const auto& order = again->buckets[1].order;
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].stage, Stage::kG1);
  EXPECT_FALSE(order[1].stage.has_value());
  EXPECT_EQ(order[1].first_layer, 5);
  EXPECT_EQ(order[1].last_layer, 6);
  EXPECT_EQ(order[1].first_chunk, 7);
  EXPECT_EQ(order[1].last_chunk, 8);
  EXPECT_EQ(placements[2].stage, Stage::kG1);
  EXPECT_EQ(placements[2].first_layer, 0);
  EXPECT_EQ(placements[2].last_layer, 1);
  EXPECT_EQ(placements[2].parts[0].device, "cpu");
}

TEST_F(PlanTest, CutOffJsonIsRefusedAtEveryByte) {
  const std::string text = to_json(sound());
  for (size_t length = 0; length < text.size(); ++length) {
    const auto plan = from_json(std::string_view(text).substr(0, length));
    ASSERT_FALSE(plan.has_value()) << length;
    ASSERT_EQ(plan.error().code, ErrorCode::kInvalidData);
  }
}

// Each value of a sound plan in turn becomes each of these.
TEST_F(PlanTest, WrongValuesAreRefusedWithTheFieldNamed) {
  Plan full = sound();
  full.buckets[0].chunks = {128};
  full.buckets[0].in_flight = 1;
  full.buckets[0].order = {{Stage::kG1, 0, 1, 1, 2}};
  full.buckets[0].placements.push_back(rich());
  const json root = json::parse(to_json(full));
  const json wrong[] = {nullptr,
                        true,
                        "NaN",
                        "",
                        std::string(100'000, 'x'),
                        "a\nb",
                        1.5,
                        1e300,
                        -2,
                        INT64_MIN,
                        UINT64_MAX,
                        json::array(),
                        json::array({json::array()}),
                        json::object()};
  const json flat = root.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    for (const json& bad : wrong) {
      if (pointer == "/reason" && bad.is_string()) continue;
      json spoilt = root;
      spoilt[json::json_pointer(pointer)] = bad;
      const auto plan = from_json(spoilt.dump());
      const bool takes_any_number = pointer.ends_with("/share") || pointer.ends_with("/delay_us");
      if (takes_any_number && bad.is_number()) continue;  // check() knows the range
      if (plan && bad == "NaN") {  // a sound name, but of nothing that there is
        ASSERT_FALSE(check(*plan, graph_).has_value()) << pointer;
        continue;
      }
      ASSERT_FALSE(plan.has_value()) << pointer << " = " << bad.dump().substr(0, 80);
      const std::string& message = plan.error().message;
      const std::string key = pointer.substr(pointer.rfind('/') + 1);
      EXPECT_NE(message.find(key), std::string::npos) << pointer << ": " << message;
      EXPECT_LT(message.size(), 300u) << pointer;
      EXPECT_EQ(message.find('\n'), std::string::npos) << pointer;
    }
  }
  // A field left out.
  for (const auto& [key, value] : root.items()) {
    json spoilt = root;
    spoilt.erase(key);
    const auto plan = from_json(spoilt.dump());
    ASSERT_FALSE(plan.has_value()) << key;
    EXPECT_SAYS(plan.error().message, "plan." + key);
  }
}

TEST_F(PlanTest, AnOrderIsARuleOrAList) {
  Plan plan = sound();
  plan.buckets[0].order_rule = OrderRule::kWavefront;
  const json root = json::parse(to_json(plan));
  EXPECT_EQ(root["buckets"][0]["order"], "wavefront");
  for (const json& bad :
       {json("backwards"), json(7), json::array(), json::object(), json::parse("[1]")}) {
    json spoilt = root;
    spoilt["buckets"][0]["order"] = bad;
    const auto refused = from_json(spoilt.dump());
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_SAYS(refused.error().message, "plan.buckets[0].order");
  }
  plan.buckets[0].order_rule = OrderRule::kProducts;
  plan.buckets[0].lag = 7;
  const json by_products = json::parse(to_json(plan));
  EXPECT_EQ(by_products["buckets"][0]["order"], "products");
  EXPECT_EQ(by_products["buckets"][0]["lag"], 7);
  const Plan read = *from_json(by_products.dump());
  EXPECT_EQ(read.buckets[0].order_rule, OrderRule::kProducts);
  EXPECT_EQ(read.buckets[0].lag, 7);
  EXPECT_EQ(order_name(read.buckets[0]), "products, 7 turns apart");
  for (const json& bad : {json(-1), json(4097), json(1.5), json("7")}) {
    json spoilt = by_products;
    spoilt["buckets"][0]["lag"] = bad;
    const auto refused = from_json(spoilt.dump());
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_SAYS(refused.error().message, "plan.buckets[0].lag");
  }
  json spoilt = root;
  spoilt["buckets"][0]["order"] = "stages";
  EXPECT_TRUE(from_json(spoilt.dump()).has_value());
  const json entry = {{"first_layer", 0}, {"last_layer", 0}, {"first_chunk", 0}, {"last_chunk", 0}};
  spoilt["buckets"][0]["order"] = std::vector<json>(8193, entry);
  const auto many = from_json(spoilt.dump());
  ASSERT_FALSE(many.has_value());
  EXPECT_SAYS(many.error().message, "8193 entries, 8192 at most");
}

TEST_F(PlanTest, AnotherVersionIsUnsupported) {
  json root = json::parse(to_json(sound()));
  root["version"] = kPlanVersion + 1;
  const auto plan = from_json(root.dump());
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kUnsupported);
}

// A mistyped "chunk" must not be a placement for all chunks.
TEST_F(PlanTest, UnknownFieldsAreRefusedWithTheirPlace) {
  Plan full = sound();
  full.buckets[0].order = {{Stage::kG1, 0, 1, 1, 2}};
  full.buckets[0].placements.push_back(rich());
  full.buckets[0].predicted = Prediction{};
  full.buckets[0].predicted->devices = {{"cpu", 1, 2, 3}};
  full.buckets[0].predicted->rejected = {{"alone", 1, 2, "slower"}};
  const json root = json::parse(to_json(full));
  ASSERT_TRUE(from_json(root.dump()).has_value());
  int objects = 0;
  const auto spoil = [&](const auto& self, const json::json_pointer& at) -> void {
    const json& here = root.at(at);
    if (here.is_object()) {
      ++objects;
      json spoilt = root;
      spoilt[at / "chnk"] = 1;
      const auto plan = from_json(spoilt.dump());
      ASSERT_FALSE(plan.has_value()) << at;
      EXPECT_EQ(plan.error().code, ErrorCode::kInvalidData);
      EXPECT_SAYS(plan.error().message, " has an unknown field \"chnk\"");
      if (!at.empty() && !at.back().empty() && std::isdigit(at.back()[0]) == 0) {
        EXPECT_SAYS(plan.error().message, "." + at.back() + " has");
      }
    }
    for (const auto& [key, value] : here.items()) {
      if (!value.is_structured()) continue;
      if (here.is_array()) {
        self(self, at / static_cast<size_t>(std::stoul(key)));
      } else {
        self(self, at / key);
      }
    }
  };
  spoil(spoil, json::json_pointer(""));
  EXPECT_GT(objects, 7);
}

TEST_F(PlanTest, AFieldThatStandsTwiceIsRefused) {
  std::string text = to_json(sound());
  ASSERT_TRUE(from_json(text).has_value());
  const size_t at = text.find("\"cut\"");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, R"("cut": "k-cut", )");
  const auto plan = from_json(text);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalidData);
  EXPECT_EQ(plan.error().message, R"(plan: "cut" stands twice in one object: leave one)");
}

TEST_F(PlanTest, HostileJsonIsRefusedQuickly) {
  const json root = json::parse(to_json(sound()));
  constexpr size_t kMany = 4'000'000;
  std::vector<std::string> texts = {
      "",
      "null",
      "[]",
      "nan",
      "-",
      "1e999999",
      "\"\\ud800\"",
      "{\"version\":1e999}",
      std::string(kMany, '['),
      std::string(kMany, '{'),
      std::string(kMany / 2, '[') + std::string(kMany / 2, ']'),
      std::string(kMany, '9'),
      std::string("{\"version\":") + std::string(kMany, '9') + "}",
      std::string("\"") + std::string(kMany, '\\') + "\"",
      std::string(std::size_t{17} << 20, ' '),
      std::string(3, '\0'),
      "\xff\xfe{}",
  };
  // A million small things where a few are wanted.
  for (const char* item : {"[]", "{}", "0", "\"\""}) {
    std::string list = "[";
    while (list.size() < kMany - 2000) list += std::string(item) + ",";
    list += std::string(item) + "]";
    for (const char* key : {"devices", "buckets", "reason"}) {
      json spoilt = root;
      spoilt[key] = "LIST";
      std::string text = spoilt.dump();
      texts.push_back(text.replace(text.find("\"LIST\""), 6, list));
    }
  }
  json spoilt = root;
  spoilt["buckets"][0]["placements"] =
      std::vector<json>(2'000, root["buckets"][0]["placements"][2]);
  for (const std::string& text : texts) {
    const std::clock_t start = std::clock();
    const auto plan = from_json(text);
    EXPECT_FALSE(plan.has_value()) << text.substr(0, 40);
    if (!plan) {
      EXPECT_LT(plan.error().message.size(), 300u);
    }
    EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 2) << text.substr(0, 40);
  }
  const auto many = from_json(spoilt.dump());
  ASSERT_TRUE(many.has_value()) << many.error().message;
  EXPECT_FALSE(check(*many, graph_).has_value());
}

}  // namespace
}  // namespace troika::plan
