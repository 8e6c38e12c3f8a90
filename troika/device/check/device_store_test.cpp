#include "troika/device/check/device_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "troika/device/conformance/testing/reference_device.h"

namespace troika::device {
namespace {

namespace fs = std::filesystem;
using conformance::testing::Fault;
using conformance::testing::ReferenceDevice;

class DeviceStoreTest : public ::testing::Test {
 protected:
  DeviceStoreTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~DeviceStoreTest() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  DeviceStore store(std::string build = "build 1") const { return {folder_, std::move(build)}; }

  static DeviceRecord good() {
    DeviceRecord record;
    record.version = "driver 7";
    record.good = true;
    record.report.groups = {{"mat_mul", 3, 1e-13, 1e-11}};
    record.report.cases = 3;
    record.report.untold = 2;
    record.report.took = std::chrono::milliseconds(20);
    return record;
  }

  // The only file of the store.
  std::string file() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/devices")) {
      files.push_back(entry.path().string());
    }
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? "" : files[0];
  }

  std::string folder_ = (fs::temp_directory_path() / "troika-store-XXXXXX").string();
};

TEST_F(DeviceStoreTest, GivesBackWhatWasSaved) {
  ASSERT_TRUE(store().save("npu:x", good()).has_value());
  const auto found = store().find("npu:x");
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->good);
  EXPECT_EQ(found->version, "driver 7");
  EXPECT_GT(found->time, 1'700'000'000);
  ASSERT_EQ(found->report.groups.size(), 1u);
  EXPECT_EQ(found->report.groups[0].group, "mat_mul");
  EXPECT_EQ(found->report.groups[0].cases, 3);
  EXPECT_EQ(found->report.groups[0].nmse, 1e-13);
  EXPECT_EQ(found->report.groups[0].bound, 1e-11);
  EXPECT_EQ(found->report.cases, 3);
  EXPECT_EQ(found->report.untold, 2);
  EXPECT_EQ(found->report.took, std::chrono::milliseconds(20));

  DeviceRecord bad;
  bad.message = "crashed by signal 11 \xff";
  ASSERT_TRUE(store().save("npu:x", bad).has_value());
  const auto again = store().find("npu:x");
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->good);
  EXPECT_TRUE(again->message.starts_with("crashed by signal 11"));
  store().forget("npu:x");
  EXPECT_FALSE(store().find("npu:x").has_value());
  store().forget("npu:x");
}

TEST_F(DeviceStoreTest, KnowsOtherDevicesAndBuildsApart) {
  const std::string long_name(300, 'a');
  for (const std::string& key : {std::string("npu"), std::string("npu:a/b"), std::string("npu:a.b"),
                                 std::string("npu:../../../etc/x"), long_name, long_name + "b"}) {
    EXPECT_FALSE(store().find(key).has_value()) << key;
    ASSERT_TRUE(store().save(key, good()).has_value()) << key;
    EXPECT_TRUE(store().find(key).has_value()) << key;
    EXPECT_FALSE(store("build 2").find(key).has_value());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/devices"), {}), 6);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(DeviceStoreTest, DamagedAndForeignFilesAreAsIfMissing) {
  ASSERT_TRUE(store().save("npu", good()).has_value());
  const std::string path = file();
  std::ifstream stream(path);
  const std::string right((std::istreambuf_iterator<char>(stream)), {});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::vector<std::string> bad = {
      "",
      "{",
      "null",
      "[]",
      "\"text\"",
      right.substr(0, right.size() / 2),
      std::string(1 << 20, '['),
      std::string(1 << 17, ' ') + right,
      with("\"format\": 1", "\"format\": 2"),
      with("\"npu\"", "\"gpu\""),
      with("\"groups\": [", "\"groups\": 3, \"g\": ["),
      with("\"group\": \"mat_mul\"", "\"group\": 7"),
      with("\"time\": ", "\"time\": 9"),  // far in the future
  };
  for (const std::string& text : bad) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_FALSE(store().find("npu").has_value()) << text.substr(0, 200);
    EXPECT_TRUE(store().save("npu", good()).has_value());
    EXPECT_TRUE(store().find("npu").has_value());
  }
}

TEST_F(DeviceStoreTest, ABadDeviceIsForgottenAfterADay) {
  DeviceRecord bad;
  bad.message = "hung";
  ASSERT_TRUE(store().save("npu", bad).has_value());
  const std::string path = file();
  std::ifstream stream(path);
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  const int64_t time = store().find("npu")->time;
  const std::string now = std::to_string(time);
  for (const auto& [age, known] : {std::pair{3600, true}, {25 * 3600, false}}) {
    std::string old = text;
    old.replace(old.find(now), now.size(), std::to_string(time - age));
    std::ofstream(path, std::ios::trunc) << old;
    EXPECT_EQ(store().find("npu").has_value(), known) << age;
  }
}

TEST_F(DeviceStoreTest, OddThingsInItsPlace) {
  ASSERT_TRUE(store().save("npu", good()).has_value());
  const std::string path = file();
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(store().find("npu").has_value());  // and does not wait for a writer
  EXPECT_TRUE(store().save("npu", good()).has_value());
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(store().find("npu").has_value());
  const Status saved = store().save("npu", good());
  ASSERT_FALSE(saved.has_value());
  EXPECT_EQ(saved.error().code, ErrorCode::kIo);
  // No temporary file is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/devices"), {}), 1);
}

TEST_F(DeviceStoreTest, WhereNothingCanBeWrittenNothingIsKnown) {
  for (const std::string& folder : {std::string("/proc/none"), folder_ + "/file/below"}) {
    std::ofstream(folder_ + "/file") << "x";
    const DeviceStore nowhere(folder, "build 1");
    const Status saved = nowhere.save("npu", good());
    ASSERT_FALSE(saved.has_value());
    EXPECT_EQ(saved.error().code, ErrorCode::kIo);
    EXPECT_NE(saved.error().message.find(folder), std::string::npos);
    EXPECT_FALSE(nowhere.find("npu").has_value());
  }
  const DeviceStore none;
  EXPECT_TRUE(none.save("npu", good()).has_value());
  EXPECT_FALSE(none.find("npu").has_value());
}

TEST_F(DeviceStoreTest, WritersAtTheSameTimeLeaveAWholeFile) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([this] {
      for (int n = 0; n < 20; ++n) {
        EXPECT_TRUE(store().save("npu", good()).has_value());
        EXPECT_TRUE(store().find("npu").has_value());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_FALSE(file().empty());
}

TEST_F(DeviceStoreTest, ADeviceIsCheckedOncePerDriver) {
  ReferenceDevice device;
  bool remembered = true;
  ASSERT_TRUE(check_once(device, "npu", store(), &remembered).has_value());
  EXPECT_FALSE(remembered);
  const auto second = check_once(device, "npu", store(), &remembered);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(remembered);
  EXPECT_GT(second->cases, 0);
  device.facts().version = "2";
  ASSERT_TRUE(check_once(device, "npu", store(), &remembered).has_value());
  EXPECT_FALSE(remembered);

  ReferenceDevice wrong(Fault::kGivesNan);
  wrong.facts().version = "3";
  const auto first = check_once(wrong, "npu", store(), &remembered);
  EXPECT_FALSE(remembered);
  const auto again = check_once(wrong, "npu", store(), &remembered);
  EXPECT_TRUE(remembered);
  ASSERT_FALSE(first.has_value() || again.has_value());
  EXPECT_TRUE(again.error().message.starts_with(first.error().message + "; found "))
      << again.error().message;
  EXPECT_EQ(again.error().code, ErrorCode::kDeviceFailed);
}

TEST_F(DeviceStoreTest, WhatWasShortForACheckIsNotRemembered) {
  ReferenceDevice device(Fault::kHasNoMemory);
  device.facts().version = "1";
  bool remembered = false;
  for (int i = 0; i < 2; ++i) {
    const auto report = check_once(device, "npu", store(), &remembered);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kOutOfMemory);
    EXPECT_FALSE(remembered);
  }
}

TEST(DeviceKey, LeavesCoresOut) {
  const auto specs = parse_device_string("cpu@0-1,systolic:chip@1,systolic,faulty:nan@7:cpu@1");
  ASSERT_TRUE(specs.has_value()) << specs.error().message;
  EXPECT_EQ(device_key((*specs)[0]), "cpu");
  EXPECT_EQ(device_key((*specs)[1]), "systolic:chip");
  EXPECT_EQ(device_key((*specs)[2]), "systolic");
  EXPECT_EQ(device_key((*specs)[3]), "faulty:nan@7:cpu");
  EXPECT_EQ(device_key((*specs)[1], true), "systolic:chip int8");
}

}  // namespace
}  // namespace troika::device
