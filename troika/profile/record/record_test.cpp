#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/repository.h"
#include "troika/base/cache_file.h"
#include "troika/profile/record/machine.h"
#include "troika/profile/record/product_law.h"
#include "troika/profile/record/profile.h"
#include "troika/profile/record/profile_store.h"

namespace troika::profile {
namespace {

using ::testing::HasSubstr;

ProductPoint point(int64_t rows, int64_t n, int64_t k, double us) {
  return {rows, n, k, "Q4_1", 5, Order::kWeightInPlace, {us, us / 100, 5}};
}

Profile example() {
  Profile profile;
  profile.build = "test";
  profile.time = seconds_since_1970() - 10;
  profile.complete = true;
  profile.model = {"tiny", "Q4_1", 2, 64, 4, 2, 16, 96, 1000, "f32"};
  for (const char* name : {"a", "b"}) {
    DeviceProfile device;
    device.name = name;
    device.kind = "cpu";
    device.version = "1";
    device.facts = {{"kernels", "avx2"}};
    device.products = {point(1, 64, 64, 3), point(64, 64, 64, 90)};
    device.attention.push_back({1, 8, 4, 2, 16, "f32", {1, 0, 3}});
    device.elementwise.push_back({"add", 1, 64, 768, {0.5, 0, 3}});
    device.layers.push_back({1, 0, {20, 1, 4}});
    device.builds.push_back({64, 64, 64, 1e4, 4096});
    device.checks.push_back({3, 64, 64, Order::kInputInPlace, 10, 11});
    profile.devices.push_back(device);
  }
  profile.pairs.push_back({"a", "b", 0.9, 0.8, 20, 15, 60});
  profile.machine.meters.push_back({"package-0", "powercap", 12.5});
  return profile;
}

TEST(Profile, IsTheSameWhenWrittenAndRead) {
  const std::string text = to_json(example());
  const auto again = from_json(text);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(to_json(*again), text);
  EXPECT_NEAR(again->devices[0].stated_error(), 0.1, 1e-9);
}

// Replaces the first occurrence.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(example());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Profile, WhatCannotBeTrueIsRefusedWithTheFieldsPath) {
  const std::pair<std::string, const char*> wrong[] = {
      {with("\"median_us\": 3.0", "\"median_us\": -3.0"),
       "profile.devices[0].products[0].time.median_us is -3.0"},
      {with("\"median_us\": 3.0", "\"median_us\": null"), "median_us is null"},
      {with("\"median_us\": 3.0", "\"median_us\": NaN"), "not valid JSON"},
      {with("\"median_us\": 3.0", "\"median_us\": 1e999"), "not valid JSON"},
      {with("\"median_us\": 3.0", "\"median\": 3.0"), "median_us is missing"},
      {with("\"median_us\": 3.0", "\"median_us\": 3.0, \"median_ms\": 1"), "unknown field"},
      {with("\"median_us\": 3.0", "\"median_us\": 3.0, \"median_us\": 4.0"), "stands twice"},
      {with("\"rows\": 64", "\"rows\": 1000000000000"), "products[1].rows is 1000000000000"},
      {with("\"rows\": 64", "\"rows\": 0"), "products[1].rows is 0"},
      {with("\"rows\": 64", "\"rows\": 6.5"), "products[1].rows is 6.5"},
      {with("\"version\": 1,\n", "\"version\": 2,\n"), "version is 2"},
      {with("\"kind\": \"cpu\"", "\"kind\": \"tpu\""), "devices[0].kind is \"tpu\""},
      {with("\"name\": \"b\"", "\"name\": \"a\""), "as of another device"},
      {with("\"first\": \"a\"", "\"first\": \"c\""), "pairs[0]"},
      {with("\"first_keeps\": 0.9", "\"first_keeps\": 1.9"), "first_keeps is 1.9"},
      {with("\"complete\": true", "\"complete\": 1"), "profile.complete is 1"},
      {to_json(example()).substr(0, 900), "not valid JSON, or cut off"},
      {std::string(50, '['), "nested deeper"},
      {std::string(kMaxProfileBytes + 1, ' '), "more than"},
      {"[]", "profile is an array"},
      {"", "not valid JSON"},
  };
  for (const auto& [text, part] : wrong) {
    const auto refused = from_json(text);
    ASSERT_FALSE(refused.has_value()) << part;
    EXPECT_THAT(refused.error().message, HasSubstr(part));
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  }
}

TEST(Profile, TheSchemaInDocsIsTheReaders) {
  std::ifstream in(repository_path("docs/profile_schema.json"));
  const std::string kept{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(kept, json_schema() + "\n") << "troika profile --schema > docs/profile_schema.json";
  const auto schema = nlohmann::json::parse(kept);
  const auto written = nlohmann::json::parse(to_json(example()));
  for (const auto& [key, value] : written.items()) {
    EXPECT_TRUE(schema["properties"].contains(key)) << key;
  }
  EXPECT_EQ(schema["required"].size(), written.size());
}

TEST(ProductLaw, IsExactWhereMeasuredAndLinearBetween) {
  const std::vector<ProductPoint> points = {point(1, 100, 100, 10), point(11, 100, 100, 110),
                                            point(1, 200, 100, 18), point(1, 100, 200, 16)};
  const ProductLaw law(points, {});
  EXPECT_NEAR(*law.us(5, 1, 100, 100), 10, 1e-9);
  EXPECT_NEAR(*law.us(5, 6, 100, 100), 60, 1e-9);
  EXPECT_NEAR(*law.us(5, 1, 150, 100), 14, 1e-9);
  // What was not measured scales as both do.
  EXPECT_NEAR(*law.us(5, 1, 200, 200), 10 * 1.8 * 1.6, 1e-9);
  EXPECT_NEAR(*law.us(5, 22, 100, 100), 220, 1e-9);
  EXPECT_FALSE(ProductLaw({}, {}).us(5, 1, 1, 1).has_value());
}

TEST(ProductLaw, IsNeverLessForMore) {
  // Noise that falls where it should rise.
  std::vector<ProductPoint> points;
  for (const int64_t rows : {1, 2, 4, 8, 16}) {
    points.push_back(point(rows, 64, 64, 10.0 + static_cast<double>(rows * 7 % 5)));
  }
  points.push_back(point(1, 128, 64, 9));
  points.push_back(point(4, 32, 64, 30));
  points.push_back(point(1, 64, 32, 12));
  const ProductLaw law(points, {{}, 1, 8, 1});
  for (int64_t rows = 1; rows < 20; ++rows) {
    for (int64_t n = 1; n < 200; n += 3) {
      for (int64_t k = 1; k < 100; k += 9) {
        const double us = *law.us(5, rows, n, k);
        if (rows > 1) {
          EXPECT_LE(us, *law.us(5, rows + 1, n, k) * (1 + 1e-12));
        }
        EXPECT_LE(us, *law.us(5, rows, n + 1, k) * (1 + 1e-12));
        EXPECT_LE(us, *law.us(5, rows, n, k + 1) * (1 + 1e-12));
      }
    }
  }
}

// Input slices of a large weight may be slower than a whole smaller one with more inputs.
TEST(ProductLaw, APartThatTakesLongerLeavesTheWholeAsMeasured) {
  const std::vector<ProductPoint> points = {point(1, 64, 32, 20), point(1, 64, 64, 8),
                                            point(1, 64, 128, 16)};
  const ProductLaw law(points, {});
  EXPECT_NEAR(*law.us(5, 1, 64, 64), 8, 1e-9);
  EXPECT_NEAR(*law.us(5, 1, 64, 128), 16, 1e-9);
  EXPECT_NEAR(*law.us(5, 1, 64, 32), 8, 1e-9);
}

TEST(ProductLaw, StandardLengthsAreAStaircase) {
  const std::vector<ProductPoint> points = {point(1, 64, 64, 1), point(32, 64, 64, 4),
                                            point(128, 64, 64, 16)};
  const ProductLaw law(points, {{1, 32, 128}, 1, 1, 1});
  EXPECT_NEAR(*law.us(5, 2, 64, 64), 4, 1e-9);
  EXPECT_NEAR(*law.us(5, 33, 64, 64), 16, 1e-9);
  EXPECT_NEAR(*law.us(5, 129, 64, 64), 16 * 129.0 / 128, 1e-9);
}

TEST(Machine, IsReadFromRecordedFiles) {
  const std::filesystem::path root = testing::TempDir() + "/troika_machine";
  std::filesystem::remove_all(root);
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << '\n';
  };
  EXPECT_TRUE(read_meters(root.string()).empty());
  EXPECT_EQ(read_machine(root.string()).power_mode(), "unknown, unknown, unknown");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1800000");
  put("sys/firmware/acpi/platform_profile", "balanced");
  put("sys/class/power_supply/BAT0/status", "Discharging");
  put("sys/class/power_supply/BAT0/power_now", "9000000");
  put("sys/class/powercap/intel-rapl:0/name", "package-0");
  put("sys/class/powercap/intel-rapl:0/energy_uj", "900");
  put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000");
  put("sys/class/hwmon/hwmon0/name", "amdgpu");
  put("sys/class/hwmon/hwmon0/power1_average", "5000000");
  put("sys/class/hwmon/hwmon1/power1_average", "-3");
  const Machine machine = read_machine(root.string());
  EXPECT_EQ(machine.power_mode(), "powersave, balanced, battery");
  EXPECT_EQ(machine.clock_mhz, 1800);
  const auto before = read_meters(root.string());
  ASSERT_EQ(before.size(), 3u);
  put("sys/class/powercap/intel-rapl:0/energy_uj", "400");  // has wrapped
  const auto power = mean_power(before, read_meters(root.string()), 2);
  ASSERT_EQ(power.size(), 3u);
  EXPECT_NEAR(power[0].mean_w, 500e-6 / 2, 1e-12);
  EXPECT_EQ(power[1].mean_w, 5);
  EXPECT_EQ(power[2].mean_w, 9);
}

TEST(ProfileStore, RefusesWhatIsStaleOrDamagedWithAReason) {
  const std::string folder = testing::TempDir() + "/troika_profiles";
  std::filesystem::remove_all(folder);
  const ProfileStore store(folder);
  Profile wanted = example();
  EXPECT_EQ(store.find(wanted).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(store.save(wanted).has_value());
  ASSERT_TRUE(store.find(wanted).has_value());
  const auto refused = [&] {
    const auto found = store.find(wanted);
    return found ? std::string() : found.error().message;
  };
  wanted.devices[1].version = "2";
  EXPECT_THAT(refused(), HasSubstr("device b was \"1"));
  wanted = example();
  wanted.machine.governor = "powersave";
  EXPECT_THAT(refused(), HasSubstr("power mode"));
  wanted = example();
  wanted.build = "other";
  EXPECT_THAT(refused(), HasSubstr("another build"));
  wanted = example();
  std::ofstream(store.path(wanted)) << "{";
  EXPECT_THAT(refused(), HasSubstr("damaged"));
  Profile old = example();
  old.time -= 31 * 24 * 3600;
  ASSERT_TRUE(store.save(old).has_value());
  EXPECT_THAT(refused(), HasSubstr("30 days"));
}

}  // namespace
}  // namespace troika::profile
