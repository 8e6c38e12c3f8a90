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

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUsage = 2;
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

TEST(SeveralDevices, CtrlCWhileADeviceIsTriedEndsTheProgram) {
  Command command;
  command.arguments = answer_on("cpu,faulty:open-hangs:cpu");
  int ticks = 0;  // long enough that the probe hangs
  command.watch = [&ticks](pid_t pid, const Outcome&) {
    if (++ticks == 200) kill(pid, SIGINT);
  };
  const Outcome outcome = run(command);
  expect_error(outcome, kCancelled, "interrupted while");
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

}  // namespace
}  // namespace troika
