#include "troika/plan/prediction.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/repository.h"
#include "troika/graph/testing/outline.h"
#include "troika/plan/plan.h"
#include "troika/plan/testing/random_plan.h"

namespace troika::plan {
namespace {

using nlohmann::json;

Plan predicted_plan() {
  const graph::testing::Outline outline("256,2,8,4,704,512");
  Plan plan = single_device_plan(outline.graph, "cpu", 8, "f32");
  plan.objective = "deadline=5";
  Prediction predicted;
  predicted.us = 1234.5;
  predicted.p90_us = 1300;
  predicted.mj = 7.25;
  predicted.reason = "cpu alone takes 1.23 ms";
  predicted.devices = {{"cpu", 1200, 4096, 6.5}};
  predicted.rejected = {{"gpu alone", 2000, 0, "takes 62.0 % longer"},
                        {"npu alone", 0, 0, "npu cannot have attention"}};
  plan.buckets.front().predicted = predicted;
  return plan;
}

TEST(Prediction, IsKeptInThePlan) {
  const Plan plan = predicted_plan();
  const std::string text = to_json(plan);
  const auto read = from_json(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->objective, "deadline=5");
  const Prediction& predicted = *read->buckets.front().predicted;
  EXPECT_EQ(predicted.us, 1234.5);
  EXPECT_EQ(predicted.p90_us, 1300);
  EXPECT_EQ(predicted.mj, 7.25);
  EXPECT_EQ(predicted.reason, "cpu alone takes 1.23 ms");
  ASSERT_EQ(predicted.devices.size(), 1u);
  EXPECT_EQ(predicted.devices[0].device, "cpu");
  EXPECT_EQ(predicted.devices[0].weight_bytes, 4096);
  ASSERT_EQ(predicted.rejected.size(), 2u);
  EXPECT_EQ(predicted.rejected[0].us, 2000);
  EXPECT_EQ(predicted.rejected[1].us, 0);
  EXPECT_EQ(to_json(*read), text);
}

TEST(Prediction, IsNotNeeded) {
  Plan plan = predicted_plan();
  plan.buckets.front().predicted.reset();
  plan.objective.clear();
  const std::string text = to_json(plan);
  EXPECT_EQ(text.find("predicted"), std::string::npos);
  EXPECT_FALSE(from_json(text)->buckets.front().predicted.has_value());
}

TEST(Prediction, WhatCannotBeIsRefusedByName) {
  struct Damage {
    const char* pointer;
    json value;
    const char* named;
  };
  const Damage damages[] = {
      {"/us", -1, "predicted.us"},
      {"/us", "fast", "predicted.us"},
      {"/p90_us", nullptr, "predicted.p90_us"},
      {"/mj", 1e300, "predicted.mj"},
      {"/reason", std::string(301, 'x'), "predicted.reason"},
      {"/devices", 3, "predicted.devices"},
      {"/devices/0/device", 7, "predicted.devices[0].device"},
      {"/devices/0/weight_bytes", -1, "predicted.devices[0].weight_bytes"},
      {"/devices/0/busy_us", -0.5, "predicted.devices[0].busy_us"},
      {"/rejected/1/name", std::string(301, 'x'), "predicted.rejected[1].name"},
      {"/rejected/0/us", -2, "predicted.rejected[0].us"},
      {"/rejected", json::array({1}), "predicted.rejected[0]"},
      {"/rejected", json(std::vector<int>(17, 0)), "predicted.rejected"},
  };
  const json sound = json::parse(to_json(predicted_plan()));
  for (const Damage& damage : damages) {
    json damaged = sound;
    damaged["buckets"][0]["predicted"][json::json_pointer(damage.pointer)] = damage.value;
    const auto read = from_json(damaged.dump());
    ASSERT_FALSE(read.has_value()) << damage.named;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidData);
    EXPECT_NE(read.error().message.find(damage.named), std::string::npos) << read.error().message;
  }
  json damaged = sound;
  damaged["objective"] = 5;
  EXPECT_NE(from_json(damaged.dump()).error().message.find("plan.objective"), std::string::npos);
}

// An object's keys are those of its schema, and the required ones are there; values are followed.
void expect_matches(const json& value, json schema, const json& root, const std::string& path) {
  if (schema.contains("$ref")) {
    schema = root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& entry : value) expect_matches(entry, schema["items"], root, path + "[]");
  }
  if (!value.is_object()) return;
  ASSERT_TRUE(schema.contains("properties")) << path;
  for (const auto& [key, entry] : value.items()) {
    ASSERT_TRUE(schema["properties"].contains(key)) << path << "." << key;
    expect_matches(entry, schema["properties"][key], root, path + "." + key);
  }
  for (const json& key : schema["required"]) {
    EXPECT_TRUE(value.contains(key.get<std::string>())) << path << "." << key;
  }
}

TEST(Prediction, PlansMatchTheirSchema) {
  std::ifstream file(repository_path("docs/plan.schema.json"));
  const json schema = json::parse(file, nullptr, false);
  ASSERT_FALSE(schema.is_discarded());
  expect_matches(json::parse(to_json(predicted_plan())), schema, schema, "plan");
  const graph::testing::Outline outline("256,3,8,4,704,512");
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const Plan plan = testing::random_plan(outline.graph, {"a", "b"}, 64, random);
    expect_matches(json::parse(to_json(plan)), schema, schema, "plan");
  }
}

}  // namespace
}  // namespace troika::plan
