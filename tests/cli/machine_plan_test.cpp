// Plans for this machine's devices: made from a stored profile, kept, used, and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kInvalidData = 4;
constexpr int kUnsupported = 5;
constexpr int kCancelled = 11;
constexpr const char* kDevices = "cpu@0,systolic@0";

class MachinePlan : public ::testing::Test {
 protected:
  MachinePlan() {
    static int count = 0;
    cache_ = scratch_folder() + "/plans-" + std::to_string(count++);
  }

  Outcome troika(std::vector<std::string> arguments) const {
    Command command;
    command.arguments = std::move(arguments);
    command.environment["TROIKA_CACHE"] = cache_;
    return run(command);
  }
  Outcome plan(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"plan", "-m", tiny_model(), "-p", "32", "--budget", "20"};
    all.insert(all.end(), more.begin(), more.end());
    return troika(all);
  }
  Outcome answer(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"run",   "-m",       tiny_model(), "--raw",         "-p",
                                    "Hello", "-n",       "4",          "--temp",        "0",
                                    "-v",    "--device", kDevices,     "--ubatch-size", "32"};
    all.insert(all.end(), more.begin(), more.end());
    return troika(all);
  }
  fs::path only_file(const std::string& folder) const {
    for (const auto& entry : fs::directory_iterator(cache_ + "/" + folder)) return entry.path();
    return {};
  }

  std::string cache_;
};

TEST_F(MachinePlan, IsMadeFromAProfileKeptUsedAndRefused) {
  expect_error(plan({"--device", kDevices}), kNotFound,
               "run 'troika profile --device cpu@0,systolic@0' for this model first");
  ASSERT_EQ(troika({"profile", "-m", tiny_model(), "--device", kDevices}).exit_code, 0);
  const std::string plain = answer().out;

  const json made = expect_json(plan({"--device", kDevices, "--json"}));
  EXPECT_EQ(made["simulated"], false);
  EXPECT_EQ(made["plan"]["devices"], (json{"cpu@0", "systolic@0"}));
  for (const json& pass : made["passes"]) {
    EXPECT_GT(pass["predicted_us"], 0);
    EXPECT_FALSE(pass["reason"].get<std::string>().empty());
  }
  const Outcome used = answer();
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_THAT(used.err, HasSubstr("plan: stored, made from a profile; decode: "));
  EXPECT_THAT(used.err, Not(HasSubstr("rates: measured")));
  EXPECT_EQ(used.out, plain);

  // A file of the profile gives the same plan.
  const std::string profile = only_file("profiles").string();
  const json again = expect_json(plan({"--profile", profile, "--json", "--no-cache"}));
  EXPECT_EQ(again["passes"].size(), made["passes"].size());

  const Outcome longer = answer({"--ubatch-size", "64"});
  EXPECT_EQ(longer.exit_code, 0);
  EXPECT_THAT(longer.err, HasSubstr("it is for passes of up to 32 rows, not 64"));
  std::ofstream(only_file("plans")) << "{\"version\": 1, \"profile\": {";
  const Outcome damaged = answer();
  EXPECT_EQ(damaged.exit_code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("the stored plan is damaged"));
  EXPECT_EQ(damaged.out, plain);
}

TEST_F(MachinePlan, TunesOnTheDevicesAndKeepsThat) {
  const Outcome tuned = answer({"--tune"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("tuned, 1 rows: "));
  EXPECT_THAT(tuned.err, HasSubstr("plan: stored, confirmed on the devices"));
  const Outcome later = answer();
  EXPECT_THAT(later.err, HasSubstr("plan: stored, confirmed on the devices"));
  EXPECT_EQ(later.out, tuned.out);
  std::ifstream in(only_file("plans"));
  const json kept = json::parse(in);
  EXPECT_EQ(kept["confirmed"], true);
  for (const json& pass : kept["passes"]) {
    EXPECT_GT(pass["measured_us"], 0);
    EXPECT_THAT(pass["best_single"].get<std::string>(), HasSubstr(" alone"));
  }
}

// Profiling takes its time first; a second is too little for all passes of an engine that compiles.
TEST_F(MachinePlan, TuningEndsWithinItsBudget) {
  const Outcome tuned = answer({"--tune", "--tune-budget", "1"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("in up to 1 s; Ctrl-C keeps what is known by then"));
  EXPECT_THAT(tuned.err, HasSubstr(" passes are confirmed"));
  EXPECT_FALSE(only_file("plans").empty());
  expect_error(answer({"--tune", "--tune-budget", "0"}), kUsage, "--tune-budget");
}

// At load, and in the middle of the profile.
TEST_F(MachinePlan, AnswersThoughADeviceFailsWhileItIsTuned) {
  const std::string plain = answer({"--device", "cpu@0"}).out;
  for (const std::string fault : {"open-fails", "lost@400"}) {
    SCOPED_TRACE(fault);
    const Outcome outcome = answer({"--tune", "--device", "cpu@0,faulty:" + fault + ":cpu@0"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, plain);
    EXPECT_THAT(outcome.err, HasSubstr("warning: not tuned: device "));
    EXPECT_THAT(outcome.err, Not(HasSubstr("error:")));
  }
}

TEST_F(MachinePlan, AnInterruptedTuningKeepsWhatIsThere) {
  ASSERT_EQ(troika({"profile", "-m", tiny_model(), "--device", kDevices}).exit_code, 0);
  Command command;
  command.arguments = {"plan", "-m",       tiny_model(), "-p",     "32", "--budget",
                       "20",   "--device", kDevices,     "--tune", "-v"};
  command.environment["TROIKA_CACHE"] = cache_;
  bool sent = false;
  command.watch = [&](pid_t pid, const Outcome& so_far) {
    if (sent || so_far.err.find("Ctrl-C keeps what is known") == std::string::npos) return;
    sent = true;
    kill(pid, SIGINT);
  };
  const Outcome interrupted = run(command);
  ASSERT_TRUE(sent);
  EXPECT_EQ(interrupted.exit_code, kCancelled) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("passes are confirmed, and the plan is kept"));
  EXPECT_THAT(answer().err, HasSubstr("plan: stored, "));
}

TEST_F(MachinePlan, WhatCannotBeMeantIsAnError) {
  expect_error(plan({"--tune"}), kUsage, "give --device LIST");
  expect_error(troika({"plan", "--device", kDevices, "--soc", "core-ultra-5-125h"}), kUsage,
               "--soc is for a described chip");
  expect_error(troika({"plan", "--device", kDevices, "--shape", "llama-3-8b"}), kUsage,
               "give -m FILE");
  expect_error(plan({"--device", kDevices, "--objective", "power-cap=5"}), kUnsupported,
               "--objective power-cap=5 needs what each device draws by itself");
  expect_error(plan({"--device", kDevices, "--objective", "speed"}), kUsage, "objective 'speed'");
  expect_error(answer({"--tune", "--split", "paired"}), kUsage, "--tune finds out who computes");
  expect_error(plan({"--profile", "/nonexistent"}), kNotFound, "/nonexistent");
  const std::string file = scratch_folder() + "/hand.json";
  std::ofstream(file) << "{\"version\": 1, \"build\": \"x\", \"time\": -1}";
  expect_error(plan({"--profile", file}), kInvalidData, "profile.time is -1");
}

TEST_F(MachinePlan, TheSchemaOfWhatIsKeptIsPrinted) {
  const json schema = expect_json(plan({"--schema"}));
  EXPECT_EQ(schema["properties"]["version"]["const"], 1);
  EXPECT_EQ(schema["properties"]["plan"]["$ref"], "plan.schema.json");
}

TEST_F(MachinePlan, BecomesADescription) {
  const std::string file = scratch_folder() + "/profile.json";
  const std::string chip = scratch_folder() + "/chip.json";
  ASSERT_EQ(troika({"profile", "-m", tiny_model(), "--device", kDevices, "-o", file}).exit_code, 0);
  ASSERT_EQ(troika({"soc", "from-profile", file, "-o", chip}).exit_code, 0);
  const json planned =
      expect_json(troika({"plan", "--soc", chip, "--weight", "64x64", "--tokens", "16", "--json"}));
  EXPECT_EQ(planned["soc"], "this-machine");
  expect_error(troika({"soc", "from-profile", file, "--name", "No Name!"}), kInvalidData, "name");
  expect_error(troika({"soc", "make"}), kUsage, "actions: from-profile, list, show");
}

}  // namespace
}  // namespace troika
