// `troika plan`: the plan of a product on a described chip, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/cli/program.h"
#include "tests/repository.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kInvalidData = 4;
constexpr int kUnsupported = 5;

std::vector<std::string> plan(std::vector<std::string> more) {
  std::vector<std::string> all = {"plan"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Plan, GivesCutSharesTimesAndAlternatives) {
  const json found =
      expect_json(troika_run(plan({"--soc", "snapdragon-8-gen-3", "--weight", "4096x14336",
                                   "--tokens", "256", "--strategy", "heteroinfer", "--json"})));
  EXPECT_EQ(found["cut"], "weight-centric");
  EXPECT_EQ(found["shares"], (json{{"gpu", 0.4}, {"npu", 0.6}}));
  EXPECT_EQ(found["grid"], "1/5");
  EXPECT_EQ(found["simulated"], true);
  EXPECT_GT(found["predicted_us"], 10'000);
  EXPECT_LT(found["predicted_us"], 17'000);
  EXPECT_GE(found["alternatives"].size(), 3u);
  for (const json& other : found["alternatives"]) {
    EXPECT_GE(other["predicted_us"], found["predicted_us"]);
    EXPECT_FALSE(other["shares"].empty());
  }
  EXPECT_LE(found["continuous"]["predicted_us"], found["predicted_us"]);
}

TEST(Plan, PrintsATable) {
  const Outcome outcome =
      troika_run(plan({"--soc", "core-ultra-5-125h", "--weight", "4096x4096", "--tokens", "1"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("core-ultra-5-125h: 4096 outputs, 4096 inputs, 1 token,"));
  EXPECT_THAT(outcome.out, HasSubstr("forecast from a description, not measured"));
  EXPECT_THAT(outcome.out, HasSubstr("\nplan          none "));
}

TEST(Plan, AGridGivenReplacesTheStrategys) {
  const json found =
      expect_json(troika_run(plan({"--soc", "snapdragon-8-gen-3", "--weight", "28672x4096",
                                   "--tokens", "1", "--grid", "1/2", "--json"})));
  EXPECT_EQ(found["grid"], "1/2");
  for (const auto& [device, share] : found["shares"].items()) {
    EXPECT_EQ(2 * share.get<double>(), std::floor(2 * share.get<double>())) << device;
  }
}

TEST(Plan, ReadsADescriptionOfOnesOwn) {
  std::ifstream in(repository_path("socs/snapdragon-8-gen-3.json"));
  json chip = json::parse(in);
  chip["name"] = "mine";
  const std::string file = scratch_folder() + "/mine.json";
  std::ofstream(file) << chip;
  const auto arguments = plan({"--soc", file, "--weight", "64x64", "--json"});
  EXPECT_EQ(expect_json(troika_run(arguments))["soc"], "mine");
  // It is not written over.
  for (const char* const flag : {"-o", "--html"}) {
    expect_error(troika_run({"plan", "--soc", file, "--shape", "llama-3.2-1b", flag, file}), kUsage,
                 "name the same file");
  }
  chip["units"][1]["bandwidth"].erase("unit");
  std::ofstream(file) << chip;
  expect_error(troika_run(arguments), kInvalidData, "soc.units[1].bandwidth.unit is missing");
}

TEST(Plan, WhatCannotBeMeantIsAnError) {
  const auto with = [](std::vector<std::string> more) {
    std::vector<std::string> all = {"plan", "--soc", "snapdragon-8-gen-3"};
    all.insert(all.end(), more.begin(), more.end());
    return troika_run(all);
  };
  expect_error(troika_run({"plan"}), kUsage, "--soc NAME is needed");
  expect_error(with({}), kUsage, "--weight NxK is needed");
  expect_error(with({"--weight", "4096"}), kUsage, "'4096' is not NxK");
  expect_error(with({"--weight", "4096x"}), kUsage, "'' is not a whole number");
  expect_error(with({"--weight", "0x4096"}), kUsage, "'0' is out of range");
  expect_error(with({"--weight=-1x4096"}), kUsage, "'-1' is out of range");
  expect_error(with({"--weight", "1x99999999999999999999"}), kUsage, "is out of range");
  expect_error(with({"--weight", "1x1", "--tokens", "0"}), kUsage, "--tokens");
  expect_error(with({"--weight", "1x1", "--grid", "2/4"}), kUsage, "grid '2/4' is not 1/N");
  expect_error(with({"--weight", "1x1", "--strategy", "fast"}), kUsage,
               "strategies: single:DEVICE");
  expect_error(with({"--weight", "1x1", "--strategy", "single:tpu"}), kUsage,
               "devices: cpu, gpu, npu");
  expect_error(with({"--weight", "1x1", "--strategy", "single:cpu"}), kUnsupported,
               "no device can have this product");
  expect_error(troika_run(plan({"--soc", "z80", "--weight", "1x1"})), kNotFound,
               ", snapdragon-8-gen-3");
  expect_error(troika_run(plan({"--soc", "./none.json", "--weight", "1x1"})), kNotFound,
               "none.json");
}

}  // namespace
}  // namespace troika
