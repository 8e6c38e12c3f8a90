#include "troika/engine/rates_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "troika/engine/engine.h"
#include "troika/model/testing/tiny_model.h"

namespace troika::engine {
namespace {

namespace fs = std::filesystem;
using model::testing::TinyModel;
using ::testing::HasSubstr;

class RatesStoreTest : public ::testing::Test {
 protected:
  RatesStoreTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~RatesStoreTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // The only file of the store.
  fs::path file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/rates"), {}), 1);
    return fs::directory_iterator(folder_ + "/rates")->path();
  }

  std::string text() const {
    std::ifstream stream(file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // What an engine of two devices said about rates.
  std::vector<std::string> open(EngineOptions options) const {
    std::vector<std::string> notes;
    options.context = 64;
    options.batch_rows = 16;
    options.cache_folder = folder_;
    options.note = [&](const std::string& line) {
      if (line.starts_with("rates: ")) notes.push_back(line.substr(7));
    };
    const auto bytes = TinyModel().bytes();
    const auto engine =
        Engine::create(*model::Model::load(*model::memory_source(bytes), "tiny.gguf", {}), options);
    EXPECT_TRUE(engine.has_value()) << engine.error().message;
    return notes;
  }

  static EngineOptions two(const std::string& build = "build 1") {
    EngineOptions options;
    options.devices = "cpu@0,systolic@0";
    options.check = false;
    options.build = build;
    return options;
  }

  std::string folder_ = (fs::temp_directory_path() / "troika-rates-XXXXXX").string();
  const std::vector<plan::DeviceRates> rates_ = {{1.5e9, 2.5e8}, {3, 4}};
};

TEST_F(RatesStoreTest, GivesBackWhatWasSaved) {
  const RatesStore store(folder_);
  EXPECT_FALSE(store.find("a", 2).has_value());
  ASSERT_TRUE(store.save("a", rates_).has_value());
  const auto known = store.find("a", 2);
  ASSERT_TRUE(known.has_value());
  ASSERT_EQ(known->rates.size(), 2u);
  EXPECT_EQ(known->rates[0].prefill, 1.5e9);
  EXPECT_EQ(known->rates[0].decode, 2.5e8);
  EXPECT_EQ(known->rates[1].decode, 4);
  EXPECT_GT(known->time, 1'700'000'000);
  EXPECT_FALSE(store.find("a", 1).has_value());
  EXPECT_FALSE(store.find("b", 2).has_value());
}

TEST_F(RatesStoreTest, DamagedForeignAndOldFilesAreAsIfMissing) {
  const RatesStore store(folder_);
  ASSERT_TRUE(store.save("a", rates_).has_value());
  const fs::path path = file();
  const std::string right = text();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = right;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  const std::string time = std::to_string(store.find("a", 2)->time);
  const std::string week_ago = std::to_string(store.find("a", 2)->time - 7 * 24 * 3600 - 10);
  const std::vector<std::string> bad = {
      "",
      "{",
      "null",
      "[1]",
      right.substr(0, right.size() / 2),
      std::string(1 << 20, '['),
      std::string(1 << 17, ' ') + right,
      with("\"format\": 1", "\"format\": 2"),
      with("\"identity\": \"a\"", "\"identity\": \"b\""),
      with("\"rates\": [", "\"rates\": [1,"),
      with("\"rates\": [", "\"rates\": {}, \"r\": ["),
      with("250000000.0", "0"),
      with("250000000.0", "-1"),
      with("250000000.0", "1e300"),
      with("250000000.0", "\"fast\""),
      with("250000000.0", "1e999"),
      with("\"prefill\"", "\"fill\""),
      with(time, week_ago),
      with(time, "9" + time),
  };
  for (const std::string& damaged : bad) {
    std::ofstream(path, std::ios::trunc) << damaged;
    EXPECT_FALSE(store.find("a", 2).has_value()) << damaged.substr(0, 300);
    EXPECT_TRUE(store.save("a", rates_).has_value());
    EXPECT_TRUE(store.find("a", 2).has_value());
  }
}

TEST_F(RatesStoreTest, WhatWasMeasuredOnABusyMachineIsBelievedForMinutes) {
  const RatesStore store(folder_);
  for (const bool disturbed : {false, true}) {
    ASSERT_TRUE(store.save("a", rates_, disturbed).has_value());
    const std::string right = text();
    const int64_t now = store.find("a", 2)->time;
    for (const int64_t age : {300, 1200}) {
      std::string old = right;
      const std::string time = std::to_string(now);
      old.replace(old.find(time), time.size(), std::to_string(now - age));
      std::ofstream(file(), std::ios::trunc) << old;
      EXPECT_EQ(store.find("a", 2).has_value(), !disturbed || age == 300) << age;
    }
  }
}

TEST_F(RatesStoreTest, WhereNothingCanBeWrittenNothingIsKnown) {
  for (const std::string& folder : {std::string("/proc/none"), std::string("/dev/null")}) {
    const RatesStore nowhere(folder);
    const Status saved = nowhere.save("a", rates_);
    ASSERT_FALSE(saved.has_value());
    EXPECT_EQ(saved.error().code, ErrorCode::kIo);
    EXPECT_FALSE(nowhere.find("a", 2).has_value());
  }
  const RatesStore none("");
  EXPECT_TRUE(none.save("a", rates_).has_value());
  EXPECT_FALSE(none.find("a", 2).has_value());
}

TEST_F(RatesStoreTest, AFullFolderForgetsTheOldest) {
  const RatesStore store(folder_);
  for (int i = 0; i < 120; ++i) ASSERT_TRUE(store.save(fmt::format("{}", i), rates_).has_value());
  EXPECT_LE(std::distance(fs::directory_iterator(folder_ + "/rates"), {}), 100);
  EXPECT_TRUE(store.find("119", 2).has_value());
}

TEST_F(RatesStoreTest, AnEngineMeasuresOnce) {
  const auto first = open(two());
  ASSERT_EQ(first.size(), 2u);
  EXPECT_THAT(first[0], HasSubstr("measuring"));
  EXPECT_THAT(first[1], HasSubstr("measured in "));
  const std::string kept = text();
  const auto second = open(two());
  ASSERT_EQ(second.size(), 1u);
  EXPECT_THAT(second[0], HasSubstr("remembered"));
  EXPECT_EQ(text(), kept);

  std::ofstream(file()) << kept.substr(0, kept.size() / 2);
  EXPECT_EQ(open(two()).size(), 2u);
  EXPECT_EQ(open(two()).size(), 1u);
  EXPECT_EQ(open(two("build 2")).size(), 2u);
  EngineOptions others = two();
  others.kernels = "portable";
  EXPECT_EQ(open(others).size(), 2u);
  others = two();
  others.devices = "systolic@0,cpu@0";
  EXPECT_EQ(open(others).size(), 2u);
  // Nobody asks for rates.
  others = two("build 3");
  others.split = "paired:50/50";
  EXPECT_TRUE(open(others).empty());
  others.split.clear();
  others.devices = "cpu@0";
  EXPECT_TRUE(open(others).empty());
}

TEST_F(RatesStoreTest, ACacheThatCannotBeWrittenCostsTheMeasurementOnly) {
  std::ofstream(folder_ + "/rates") << "in the way";
  for (int i = 0; i < 2; ++i) {
    const auto notes = open(two());
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_THAT(notes[1], HasSubstr("not remembered: cannot"));
  }
}

}  // namespace
}  // namespace troika::engine
