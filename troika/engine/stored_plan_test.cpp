#include "troika/engine/stored_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/repository.h"
#include "troika/base/cache_file.h"

namespace troika::engine {
namespace {

using ::testing::HasSubstr;

StoredPlan example() {
  StoredPlan stored;
  stored.time = seconds_since_1970() - 5;
  stored.strategy = std::string("troika");
  stored.of.build = std::string("test");
  stored.of.time = stored.time;
  stored.of.complete = true;
  stored.of.model = {"tiny", "Q4_1", 2, 64, 4, 2, 16, 96, 1000, "f32"};
  for (const char* name : {"cpu@0", "npu"}) {
    profile::DeviceProfile device;
    device.name = name;
    device.kind = std::string("cpu");
    device.version = std::string("1");
    stored.of.devices.push_back(device);
  }
  plan::RowsBucket bucket;
  bucket.max_rows = 1;
  plan::Placement placement;
  placement.stage = graph::Stage::kInput;
  placement.parts = {{"cpu@0", 1, false}};
  bucket.placements = {placement};
  stored.plan.devices = {"cpu@0", "npu"};
  stored.plan.reason = std::string("a test");
  stored.plan.buckets = {bucket};
  PlannedPass pass;
  pass.name = std::string("cpu@0 alone");
  pass.reason = std::string("co-execution is refused");
  pass.predicted_us = 1234.5;
  stored.passes = {pass};
  return stored;
}

TEST(StoredPlan, IsTheSameWhenWrittenAndRead) {
  const std::string text = to_json(example());
  const auto again = stored_plan_from_json(text);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(to_json(*again), text);
  EXPECT_EQ(again->passes[0].predicted_us, 1234.5);
  EXPECT_EQ(again->plan.devices.size(), 2u);
}

TEST(StoredPlan, TextIsKeptShortAndPrintable) {
  StoredPlan stored = example();
  stored.passes[0].reason = std::string(1000, 'x') + "\n";
  stored.passes[0].name = std::string("caf\xc3\xa9");
  const auto again = stored_plan_from_json(to_json(stored));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->passes[0].reason.size(), 400u);
  EXPECT_EQ(again->passes[0].name, "caf??");
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(example());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(StoredPlan, HasASchemaThatNamesAllItsFields) {
  std::ifstream in(repository_path("docs/stored_plan.schema.json"));
  const std::string kept{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(kept, stored_plan_schema() + "\n")
      << "troika plan --schema > docs/stored_plan.schema.json";
  const auto schema = nlohmann::json::parse(kept);
  const auto written = nlohmann::json::parse(to_json(example()));
  for (const auto& [key, value] : written.items()) {
    EXPECT_TRUE(schema["properties"].contains(key)) << key;
  }
  EXPECT_EQ(schema["required"].size(), written.size());
}

TEST(StoredPlan, WhatCannotBeTrueIsRefusedWithTheFieldsPath) {
  const std::pair<std::string, const char*> wrong[] = {
      {with("\"predicted_us\": 1234.5", "\"predicted_us\": -1"), "passes[0].predicted_us is -1"},
      {with("\"predicted_us\": 1234.5", "\"predicted_us\": NaN"), "not valid JSON"},
      {with("\"predicted_us\": 1234.5", "\"predicted_us\": 1e300"), "predicted_us is 1e+300"},
      {with("\"predicted_us\": 1234.5", "\"predicted\": 1"), "predicted_us is missing"},
      {with("\"strategy\": \"troika\"", "\"strategy\": 7"), "strategy is 7"},
      {with("\"confirmed\": false", "\"confirmed\": 0"), "confirmed is 0"},
      {with("\"time\": ", "\"clock\": 1, \"time\": "), "unknown field"},
      {with("\"profile\": {", "\"profil\": {"), "profile is missing"},
      {with("\"plan\": {", "\"pla\": {"), "plan is missing"},
      {with("\"version\": 1,", "\"version\": 7,"), "version is 7"},
      {with("\"passes\": [", "\"passes\": [], \"passe\": ["), "unknown field"},
      {to_json(example()).substr(0, 300), "not valid JSON, or cut off"},
      {std::string(60, '['), "nested deeper"},
      {"[]", "not an object"},
      {"", "not valid JSON"},
      {std::string(kMaxStoredPlanBytes + 1, ' '), "more than"},
  };
  for (const auto& [text, part] : wrong) {
    const auto refused = stored_plan_from_json(text);
    ASSERT_FALSE(refused.has_value()) << part;
    EXPECT_THAT(refused.error().message, HasSubstr(part));
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  }
}

class PlanStoreTest : public ::testing::Test {
 protected:
  PlanStoreTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~PlanStoreTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string refused(const profile::Profile& wanted, const std::string& type = "f32") const {
    const auto found = PlanStore(folder_).find(wanted, type);
    return found ? std::string() : found.error().message;
  }

  std::string folder_ = (std::filesystem::temp_directory_path() / "troika-plans-XXXXXX").string();
};

TEST_F(PlanStoreTest, RefusesWhatIsStaleOrDamagedWithAReason) {
  const PlanStore store(folder_);
  const StoredPlan stored = example();
  EXPECT_EQ(store.find(stored.of, "f32").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(store.save(stored).has_value());
  EXPECT_EQ(refused(stored.of), "");
  EXPECT_EQ(store.find(stored.of, "int8").error().code, ErrorCode::kNotFound);

  profile::Profile other = stored.of;
  other.devices[1].version = std::string("2");
  EXPECT_THAT(refused(other), HasSubstr("the stored plan is stale: device npu was \"1"));
  other = stored.of;
  other.build = std::string("new");
  EXPECT_THAT(refused(other), HasSubstr("another build"));
  other = stored.of;
  other.machine.governor = std::string("powersave");
  EXPECT_THAT(refused(other), HasSubstr("power mode"));
  other = stored.of;
  other.devices.pop_back();
  EXPECT_EQ(store.find(other, "f32").error().code, ErrorCode::kNotFound);

  std::ofstream(store.path(stored.of, "f32")) << "{\"version\": 1";
  EXPECT_THAT(refused(stored.of), HasSubstr("the stored plan is damaged: "));
  EXPECT_EQ(PlanStore("").find(stored.of, "f32").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troika::engine
