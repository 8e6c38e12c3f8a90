// devices and doctor: what they say of devices that work, and of drivers that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNotFound = 3;
constexpr int kDeviceFailed = 9;
constexpr int kTimeout = 10;

class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() {
    static int count = 0;
    cache_ = scratch_folder() + "/cache-" + std::to_string(count++);
  }

  Outcome run_here(std::vector<std::string> arguments, const std::string& harm = "") const {
    Command command;
    command.arguments = std::move(arguments);
    command.environment["TROIKA_CACHE"] = cache_;
    if (!harm.empty()) {
      command.environment["LD_PRELOAD"] = TROIKA_BROKEN_DRIVER;
      command.environment["BROKEN_DRIVER"] = harm;
    }
    return run(command);
  }

  // The entry of a device in the JSON list.
  static json entry(const json& list, const std::string& name) {
    for (const json& device : list) {
      if (device["name"] == name) return device;
    }
    ADD_FAILURE() << "no " << name << " in " << list.dump();
    return {};
  }

  std::string cache_;
};

TEST_F(DevicesTest, ListsEachKindWithItsFacts) {
  const json list = expect_json(run_here({"devices", "--json"}));
  const json cpu = entry(list, "cpu");
  EXPECT_FALSE(cpu.contains("error"));
  EXPECT_EQ(cpu["kind"], "cpu");
  EXPECT_TRUE(cpu["exact"].get<bool>());
  const json npu = entry(list, "systolic");
  EXPECT_EQ(npu["kind"], "npu");
  EXPECT_FALSE(npu["exact"].get<bool>());
  EXPECT_FALSE(npu["standard_rows"].empty());
  for (const char* key :
       {"description", "version", "cores", "threads", "n_tile", "k_tile", "strided",
        "unified_memory", "paged_attention", "capacity_bytes", "facts"}) {
    EXPECT_TRUE(npu.contains(key)) << key;
  }
  const Outcome text = run_here({"devices"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("systolic (npu)"));
  EXPECT_THAT(text.out, HasSubstr("inputs rounded to FP16"));
}

TEST_F(DevicesTest, ACheckIsRememberedAndADamagedMemoryCostsAnother) {
  expect_json(run_here({"devices", "--json"}));
  int files = 0;
  for (const auto& file : fs::directory_iterator(cache_ + "/devices")) {
    ++files;
    std::ofstream(file.path()) << "{\"format\": ";
  }
  EXPECT_GE(files, 1);
  const json list = expect_json(run_here({"devices", "--json"}));
  EXPECT_FALSE(entry(list, "systolic").contains("error"));
}

TEST_F(DevicesTest, AnAnswerChecksADeviceOnceForEachDriverAndBuild) {
  const auto answer = [&] {
    const Outcome outcome = run_here(
        {"run", "-m", tiny_model(), "--raw", "-p", "Hello", "-n", "1", "--device", "systolic"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  answer();
  const fs::path record = fs::directory_iterator(cache_ + "/devices")->path();
  auto written = fs::last_write_time(record);
  answer();
  EXPECT_EQ(fs::last_write_time(record), written) << "checked again";
  json known = json::parse(std::ifstream(record));
  for (const char* key : {"version", "build"}) {
    const std::string right = known[key];
    known[key] = right + " as it was before";
    std::ofstream(record) << known;
    written = fs::last_write_time(record);
    answer();
    EXPECT_NE(fs::last_write_time(record), written) << key;
    known = json::parse(std::ifstream(record));
    EXPECT_EQ(known[key], right);
  }
}

TEST_F(DevicesTest, WithoutACacheEverythingWorks) {
  Command command;
  command.arguments = {"doctor", "--json"};
  command.environment = {{"TROIKA_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}};
  json report = expect_json(run(command));
  EXPECT_EQ(report["cache"]["folder"], "");
  EXPECT_FALSE(report["cache"]["writable"].get<bool>());
  command.environment = {{"TROIKA_CACHE", "/proc/none"}};
  report = expect_json(run(command));
  EXPECT_FALSE(report["cache"]["writable"].get<bool>());
  EXPECT_THAT(report["cache"]["reason"].get<std::string>(), HasSubstr("/proc/none"));
  EXPECT_EQ(entry(report["devices"], "systolic")["status"], "ok");
}

TEST_F(DevicesTest, DoctorTellsOfEachDeviceAndTheMachine) {
  const Outcome outcome = run_here({"doctor"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"cpu          ok ", "systolic     ok ", "cases right",
                           "cores        ok ", "memory       ok ", "GiB available",
                           "cache        ok ", "writable", "operator", "mat_mul", "attention"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("faulty")));
  const json report = expect_json(run_here({"doctor", "--json"}));
  for (const char* name : {"cpu", "systolic"}) {
    const json device = entry(report["devices"], name);
    EXPECT_EQ(device["status"], "ok");
    EXPECT_EQ(device["end"], "good");
    EXPECT_GT(device["check"]["cases"], 0);
    for (const json& group : device["check"]["groups"]) {
      EXPECT_LE(group["nmse"].get<double>(), group["bound"].get<double>());
    }
  }
  EXPECT_FALSE(report["cores"]["allowed"].empty());
  EXPECT_GT(report["memory"]["available_bytes"], 0);
  EXPECT_EQ(report["cache"]["folder"], cache_);
}

TEST_F(DevicesTest, OnlyWhatWasNamedMustBeThere) {
  expect_error(run_here({"doctor", "--device", "abacus"}), kNotFound, "abacus");
  const Outcome missing = run_here({"doctor", "--device", "cpu,systolic:no-such-chip"});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_THAT(missing.out, HasSubstr("cpu          ok "));
  EXPECT_THAT(missing.out, HasSubstr("systolic:no-such-chip missing "));
  EXPECT_THAT(missing.err,
              HasSubstr("error: 1 of 2 devices cannot be used: systolic:no-such-chip"));
  const Outcome listed = run_here({"devices", "--device", "systolic:no-such-chip"});
  EXPECT_NE(listed.exit_code, 0);
  EXPECT_EQ(listed.out, "");
  EXPECT_THAT(listed.err, HasSubstr("no-such-chip"));
}

TEST_F(DevicesTest, ABrokenDriverIsToldRememberedAndTriedAgainByTheDoctor) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer must be loaded first";
  const std::pair<std::string, std::string> harms[] = {
      {"crash", "crashed, by signal 11"},
      {"abort", "its last words: driver: firmware 7 is required, found 6"},
      {"exit", "with exit code 139"}};
  for (const auto& [harm, part] : harms) {
    SCOPED_TRACE(harm);
    const Outcome listed = run_here({"devices"}, harm);
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    EXPECT_THAT(listed.out, HasSubstr("cpu (cpu)"));
    EXPECT_THAT(listed.out, HasSubstr("systolic: not usable: "));
    EXPECT_THAT(listed.out, HasSubstr(part));
    const json list = expect_json(run_here({"--list-devices", "--json"}));
    const json npu = entry(list, "systolic");
    EXPECT_EQ(npu["status"], "bad");
    EXPECT_THAT(npu["error"].get<std::string>(), HasSubstr(part));
    EXPECT_THAT(npu["error"].get<std::string>(), HasSubstr("'troika doctor' tries it again"));

    const Outcome bad = run_here({"doctor"}, harm);
    EXPECT_EQ(bad.exit_code, kDeviceFailed);
    EXPECT_THAT(bad.out, HasSubstr("cpu          ok "));
    EXPECT_THAT(bad.out, HasSubstr("systolic     bad "));
    EXPECT_THAT(bad.out, HasSubstr(part));
    EXPECT_THAT(bad.out, Not(HasSubstr("tries it again")));
    EXPECT_EQ(run_here({"doctor"}).exit_code, 0);
    EXPECT_THAT(run_here({"devices"}).out, HasSubstr("systolic (npu)"));
  }
}

TEST_F(DevicesTest, ADriverThatPrintsIsListenedPast) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer must be loaded first";
  const json list = expect_json(run_here({"devices", "--json"}, "noise"));
  EXPECT_FALSE(entry(list, "systolic").contains("error"));
}

TEST_F(DevicesTest, AHangingDriverIsGivenUp) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer must be loaded first";
  const Outcome outcome = run_here({"doctor", "--device", "systolic", "--json"}, "hang");
  EXPECT_EQ(outcome.exit_code, kTimeout);
  EXPECT_GT(outcome.seconds, 9);
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report["devices"][0]["end"], "hung");
  EXPECT_EQ(report["devices"][0]["status"], "bad");
}

TEST_F(DevicesTest, TheProbingVerbIsNotForPeople) {
  for (const auto& arguments : {std::vector<std::string>{"--help"}, {"completion"}}) {
    EXPECT_THAT(run_here(arguments).out, Not(HasSubstr("probe-device")));
  }
  const json good = expect_json(run_here({"probe-device", "--device", "systolic"}));
  EXPECT_TRUE(good["opened"].get<bool>());
  EXPECT_GT(good["check"]["cases"], 0);
  const json none = expect_json(run_here({"probe-device", "--device", "abacus"}));
  EXPECT_FALSE(none["opened"].get<bool>());
  EXPECT_THAT(none["error"]["message"].get<std::string>(), HasSubstr("abacus"));
}

}  // namespace
}  // namespace troika
