// Answers that several devices work on: what goes wrong, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/cli/program.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kTinyLayers = 2;
constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kDeviceFailed = 9;
constexpr int kCancelled = 11;

// `troika run -m tiny --device DEVICES ...`, greedy.
std::vector<std::string> answer_on(const std::string& devices,
                                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"run",          "-m",       tiny_model(), "-p", "Hello",
                                        "-n",           "8",        "--temp",     "0",  "--raw",
                                        "--ignore-eos", "--device", devices};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// All of the tiny model on `cpu`, for a model with this fingerprint.
std::string plan_for(const std::string& model, const std::string& reason) {
  const json part = {{"device", "cpu"}, {"share", 1}};
  json placements = json::array();
  const auto place = [&](const char* stage, int first, int last) {
    placements.push_back({{"stage", stage},
                          {"first_layer", first},
                          {"last_layer", last},
                          {"cut", "none"},
                          {"parts", json::array({part})}});
  };
  for (const char* stage : {"G1", "A", "G2"}) place(stage, 0, kTinyLayers - 1);
  for (const char* stage : {"input", "head"}) place(stage, -1, -1);
  const json bucket = {{"max_rows", 1 << 24}, {"placements", placements}};
  const json plan = {{"version", 2},
                     {"model", model},
                     {"devices", json::array({"cpu"})},
                     {"activations", "f32"},
                     {"kv_type", "f32"},
                     {"reason", reason},
                     {"buckets", json::array({bucket})}};
  return plan.dump();
}

// The fingerprint is what a plan for another model is told.
std::string plan_of_everything(const std::string& reason) {
  const std::string path = scratch_folder() + "/other-model.json";
  std::ofstream(path) << plan_for("0123456789abcdef", "");
  const Outcome refused = troika_run(answer_on("cpu", {"--plan", path}));
  const std::string mark = "but this one is ";
  const size_t at = refused.err.find(mark);
  EXPECT_NE(at, std::string::npos) << refused.err;
  if (at == std::string::npos) return "";
  return plan_for(refused.err.substr(at + mark.size(), 16), reason);
}

TEST(SeveralDevices, CtrlCWhileADeviceIsTriedEndsTheProgram) {
  Command command;
  command.arguments = answer_on("cpu,faulty:open-hangs:cpu");
  int ticks = 0;  // long enough that the probe hangs
  command.watch = [&ticks](pid_t pid, const Outcome&) {
    if (++ticks == 200) kill(pid, SIGINT);
  };
  const Outcome outcome = run(command);
  expect_error(outcome, kCancelled, "interrupted while device faulty:open-hangs:cpu was tried");
  EXPECT_LT(outcome.seconds, 9);  // the probe would be given up after 10
}

TEST(SeveralDevices, ADeviceRememberedAsBrokenIsSaidToBe) {
  Command command;
  command.arguments = answer_on("cpu,faulty:crash-on-open:cpu");
  command.environment["TROIKA_CACHE"] = scratch_folder() + "/broken-cache";
  const Outcome first = run(command);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("crashed, by signal 6"));
  EXPECT_THAT(first.err, Not(HasSubstr("troika doctor")));
  const Outcome second = run(command);
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(second.err, HasSubstr("'troika doctor' tries it again"));
}

TEST(SeveralDevices, AChatGoesOnWithoutALostDeviceAndEndsWithoutAny) {
  Command command;
  command.input = "Hello\nHow are you?\nGoodbye\n";
  const auto chat_on = [&](const std::string& devices) {
    command.arguments = {"chat",   "-m", tiny_model(), "-n",    "8",       "--ignore-eos",
                         "--temp", "0",  "--device",   devices, "--split", "paired"};
    return run(command);
  };
  const Outcome alone = chat_on("cpu");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  const Outcome one_lost = chat_on("cpu,faulty:lost@120:cpu");
  EXPECT_EQ(one_lost.exit_code, 0) << one_lost.err;
  EXPECT_EQ(std::count(one_lost.err.begin(), one_lost.err.end(), '\n'), 1) << one_lost.err;
  EXPECT_EQ(one_lost.out, alone.out);
  EXPECT_THAT(one_lost.err, HasSubstr("warning: device faulty:lost@120:cpu is put aside"));
  const Outcome none = chat_on("faulty:lost@80:cpu");
  EXPECT_EQ(none.exit_code, kDeviceFailed) << none.err;
  EXPECT_THAT(none.err, HasSubstr("error: no device is left"));
  EXPECT_EQ(std::count(none.err.begin(), none.err.end(), '\n'), 1) << none.err;
}

TEST(SeveralDevices, PlansThatAreNoFilesAreRefused) {
  const std::string fifo = scratch_folder() + "/plan-fifo";
  mkfifo(fifo.c_str(), 0600);
  const std::string long_file = scratch_folder() + "/long-plan.json";
  std::ofstream(long_file) << "{";
  std::filesystem::resize_file(long_file, uint64_t{1} << 40);
  const std::pair<std::string, std::string> cases[] = {
      {"", "--plan: '' names no file"},
      {"/", "not a regular file; pipe the text in with '--plan -'"},
      {"/dev/zero", "not a regular file"},
      {fifo, "not a regular file"},
      {long_file, "holds more than 64 MiB"},
  };
  for (const auto& [path, part] : cases) {
    SCOPED_TRACE(path);
    const Outcome outcome = troika_run({"run", "-m", tiny_model(), "-p", "Hi", "--plan", path});
    expect_error(outcome, kUsage, part);
    expect_quick_and_small(outcome);
  }
}

TEST(SeveralDevices, AnImpossibleDeviceIsTheUsersMistake) {
  for (const char* device :
       {"systolic:no-chip", "paced:no-chip.gpu:cpu", "paced:snapdragon-8-gen-3.no-unit:cpu"}) {
    SCOPED_TRACE(device);
    expect_error(troika_run(answer_on(std::string("cpu@0,") + device)), kUsage, "chip ");
  }
}

TEST(SeveralDevices, MoreThreadsThanWereAskedForAreWarnedOf) {
  const Outcome outcome = troika_run(answer_on("cpu,systolic", {"-t", "1"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("warning: -t 1: the devices named use 2 threads all the same"));
}

TEST(SeveralDevices, APlanForDevicesThatAreNotHereIsNamed) {
  const std::string path = scratch_folder() + "/of-another-chip.json";
  std::string plan = plan_for("0123456789abcdef", "");
  for (size_t at; (at = plan.find("\"cpu\"")) != std::string::npos;) plan.replace(at, 5, "\"gpu\"");
  std::ofstream(path) << plan;
  expect_error(troika_run({"run", "-m", tiny_model(), "-p", "Hi", "--plan", path}), kNotFound,
               "of-another-chip.json': no device \"gpu\": this build has cpu");
}

TEST(SeveralDevices, WordsOfAPlanAreNoControlCharacters) {
  const std::string path = scratch_folder() + "/loud-plan.json";
  std::ofstream(path) << plan_of_everything("\x1b[31mred\nerror: no");
  Command command;
  command.arguments = answer_on("cpu", {"--plan", path, "-v"});
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(R"(plan: \x1b[31mred\nerror: no)"));
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
}

// Its last bucket is for any number of rows, which no pass has.
TEST(SeveralDevices, APlanForLongerPassesThanThereAreTakesNoMemoryForThem) {
  const std::string path = scratch_folder() + "/long-passes.json";
  std::ofstream(path) << plan_of_everything("for all");
  const Outcome planned = troika_run(answer_on("cpu", {"--plan", path}));
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(planned.out, troika_run(answer_on("cpu")).out);
}

}  // namespace
}  // namespace troika
