// `troika profile`: a profile is measured, kept, used again, and taken up after Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/cli/program.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUsage = 2;
constexpr int kInvalidData = 4;
constexpr int kCancelled = 11;

Command profile(const std::string& cache, std::vector<std::string> more) {
  Command command;
  command.arguments = {"profile", "-m", tiny_model(), "-v"};
  command.arguments.insert(command.arguments.end(), more.begin(), more.end());
  command.environment["TROIKA_CACHE"] = scratch_folder() + "/" + cache;
  return command;
}

json read_json(const std::string& path) {
  std::ifstream in(path);
  return json::parse(std::string{std::istreambuf_iterator<char>(in), {}});
}

json kept_profile(const std::string& cache) {
  for (const auto& entry :
       std::filesystem::directory_iterator(scratch_folder() + "/" + cache + "/profiles")) {
    return read_json(entry.path().string());
  }
  return nullptr;
}

// Outputs, inputs, order: what must be there of any run.
std::set<std::string> shapes(const json& profile) {
  std::set<std::string> found;
  for (const json& device : profile["devices"]) {
    for (const json& point : device["products"]) {
      found.insert(device["name"].get<std::string>() + " " + point["n"].dump() + " " +
                   point["k"].dump());
    }
  }
  return found;
}

TEST(Profile, IsTakenUpAfterCtrlCAndThenKept) {
  const std::string output = scratch_folder() + "/profile.json";
  Command command = profile("taken-up", {"--device", "cpu@0", "-o", output});
  bool stopped = false;
  command.watch = [&](pid_t pid, const Outcome& so_far) {
    if (stopped || so_far.err.find("devices are good") == std::string::npos) return;
    stopped = true;
    kill(pid, SIGINT);
  };
  const Outcome interrupted = run(command);
  ASSERT_EQ(interrupted.exit_code, kCancelled) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("interrupted while"));
  const json before = kept_profile("taken-up");
  EXPECT_EQ(before["complete"], false);

  command.watch = nullptr;
  const Outcome taken_up = run(command);
  ASSERT_EQ(taken_up.exit_code, 0) << taken_up.err;
  EXPECT_THAT(taken_up.err, HasSubstr("taking up an interrupted run"));
  const json whole = read_json(output);
  EXPECT_EQ(whole["complete"], true);
  // What was measured before the interruption is in it as it was.
  for (const json& point : before["devices"][0]["products"]) {
    const json& products = whole["devices"][0]["products"];
    EXPECT_NE(std::find(products.begin(), products.end(), point), products.end()) << point;
  }

  const Outcome kept = run(command);
  EXPECT_EQ(kept.exit_code, 0);
  EXPECT_THAT(kept.err, HasSubstr("the stored profile holds"));
  EXPECT_EQ(read_json(output), whole);

  const Outcome fresh = run(profile("uninterrupted", {"--device", "cpu@0", "-o", output}));
  EXPECT_THAT(fresh.err, Not(HasSubstr("taking up")));
  EXPECT_EQ(shapes(read_json(output)), shapes(whole));

  const Outcome shown = troika_run({"profile", output});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, HasSubstr("cpu@0 (cpu): "));
}

TEST(Profile, OfOtherHandsIsRefusedInOneLine) {
  const std::string file = scratch_folder() + "/by-hand.json";
  const auto refused = [&](const std::string& text, const std::string& part) {
    std::ofstream(file) << text;
    expect_error(troika_run({"profile", file}), kInvalidData, part);
  };
  refused("", "not valid JSON");
  refused("{\"version\": 1", "cut off");
  refused("{\"version\": 1}", "profile.build is missing");
  refused(std::string(100, '['), "nested deeper");
  expect_error(troika_run({"profile", "--kv", file}), kUsage, "--kv");
  for (const char* const flag : {"-o", "--html"}) {
    expect_error(troika_run({"profile", file, flag, file}), kUsage, "name the same file");
  }
}

TEST(Profile, PrintsTheSchemaOfItsFiles) {
  const json schema = expect_json(troika_run({"profile", "--schema"}));
  EXPECT_EQ(schema["properties"]["version"]["const"], 1);
  EXPECT_EQ(schema["additionalProperties"], false);
}

}  // namespace
}  // namespace troika
