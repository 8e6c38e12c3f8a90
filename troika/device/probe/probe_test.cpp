#include "troika/device/probe/probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "troika/device/probe/child_process.h"
#include "troika/device/probe/info_json.h"

namespace troika::device {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~ProbeTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    // No child is left, dead or alive.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  DeviceStore store() const { return {folder_, "test"}; }
  ProbeRequest request(const std::string& device) const {
    ProbeRequest request;
    request.command = {TROIKA_PROBED_CHILD, folder_};
    request.device = device;
    request.key = device;
    request.time_limit = std::chrono::seconds(60);
    return request;
  }
  ProbeReport probe_one(const std::string& device) const {
    const auto report = probe(request(device), store());
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report ? *report : ProbeReport{};
  }
  ChildOutcome run(const std::string& name) const {
    ChildCommand command;
    command.arguments = {TROIKA_PROBED_CHILD, folder_, name};
    command.time_limit = std::chrono::seconds(60);
    const auto outcome = run_child(command);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
    return outcome ? *outcome : ChildOutcome{};
  }
  // Whether the process that the child left behind still runs; a dead one may wait to be reaped by
  // whoever inherited it.
  bool left_process_runs() const {
    int pid = 0;
    std::ifstream(folder_ + "/left") >> pid;
    EXPECT_GT(pid, 0);
    for (int i = 0; i < 200; ++i) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string number;
      std::string name;
      std::string state;
      if (!(stat >> number >> name >> state) || state == "Z" || state == "X") return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  std::string folder_ = (fs::temp_directory_path() / "troika-probe-XXXXXX").string();
};

TEST_F(ProbeTest, AGoodDeviceTellsItsFactsAndItsCheckIsRemembered) {
  const ProbeReport first = probe_one("good");
  EXPECT_EQ(first.end, ProbeEnd::kGood) << first.error.message;
  EXPECT_TRUE(first.opened);
  EXPECT_FALSE(first.remembered);
  EXPECT_EQ(first.info.name, "reference");
  EXPECT_EQ(first.info.kind, DeviceKind::kNpu);
  EXPECT_GT(first.check.cases, 0);
  const ProbeReport second = probe_one("good");
  EXPECT_EQ(second.end, ProbeEnd::kGood);
  EXPECT_TRUE(second.remembered);
  EXPECT_EQ(second.check.cases, first.check.cases);
  ProbeRequest again = request("good");
  again.again = true;
  const auto third = probe(again, store());
  ASSERT_TRUE(third.has_value());
  EXPECT_FALSE(third->remembered);
}

TEST_F(ProbeTest, ADeviceThatRefusesGivesItsReasonAndIsTriedAgain) {
  for (int i = 0; i < 2; ++i) {
    const ProbeReport report = probe_one("refused");
    EXPECT_EQ(report.end, ProbeEnd::kRefused);
    EXPECT_FALSE(report.opened);
    EXPECT_FALSE(report.remembered);
    EXPECT_EQ(report.error.code, ErrorCode::kNotFound);
    EXPECT_EQ(report.error.message, "no such chip in this machine");
  }
}

TEST_F(ProbeTest, WrongValuesAreNamedAndRemembered) {
  for (const bool remembered : {false, true}) {
    const ProbeReport report = probe_one("wrong");
    EXPECT_EQ(report.end, ProbeEnd::kWrong);
    EXPECT_TRUE(report.opened);
    EXPECT_EQ(report.remembered, remembered);
    EXPECT_EQ(report.error.code, ErrorCode::kDeviceFailed);
    EXPECT_THAT(report.error.message, HasSubstr("NaN or infinite values at mat_mul"));
  }
}

TEST_F(ProbeTest, WhatBroughtTheChildDownIsToldApartAndRemembered) {
  struct Bad {
    const char* device;
    ProbeEnd end;
    const char* part;
  };
  for (const Bad& bad :
       {Bad{"segfault", ProbeEnd::kCrashed, "crashed, by signal 11 (Segmentation fault);"},
        Bad{"abort", ProbeEnd::kCrashed, "(its last words: firmware 3 is wanted, 2 is there)"},
        Bad{"exit", ProbeEnd::kExited, "with exit code 77;"},
        Bad{"silent", ProbeEnd::kNonsense, "gave 0 bytes"},
        Bad{"noise", ProbeEnd::kNonsense, "and no answer"},
        Bad{"endless", ProbeEnd::kNonsense, "wrote without end"}}) {
    SCOPED_TRACE(bad.device);
    const ProbeReport report = probe_one(bad.device);
    EXPECT_EQ(to_string(report.end), to_string(bad.end));
    EXPECT_EQ(report.error.code, ErrorCode::kDeviceFailed);
    EXPECT_THAT(report.error.message, HasSubstr(bad.part));
    EXPECT_THAT(report.error.message, HasSubstr(bad.device));
    EXPECT_THAT(report.error.message, HasSubstr("leave it out of --device"));
    EXPECT_FALSE(report.remembered);

    // No child is started any more, until somebody insists.
    ProbeRequest later = request(bad.device);
    later.command[0] = "/nonexistent";
    const auto remembered = probe(later, store());
    ASSERT_TRUE(remembered.has_value());
    EXPECT_TRUE(remembered->remembered);
    EXPECT_GT(remembered->bad_since, 1'700'000'000);
    EXPECT_EQ(to_string(remembered->end), to_string(bad.end));
    EXPECT_EQ(remembered->error.message, report.error.message);
    later.again = true;
    const auto started = probe(later, store());
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(started.error().code, ErrorCode::kIo);
    EXPECT_THAT(started.error().message, HasSubstr("/nonexistent"));
  }
}

TEST_F(ProbeTest, AHangingChildIsKilledWithAllThatItStarted) {
  ProbeRequest hanging = request("hangs-with-another");
  hanging.time_limit = std::chrono::seconds(2);
  const TimePoint begin = system_clock().now();
  const auto report = probe(hanging, store());
  const double seconds = to_seconds(system_clock().now() - begin);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->end, ProbeEnd::kHung);
  EXPECT_EQ(report->error.code, ErrorCode::kTimeout);
  EXPECT_THAT(report->error.message, HasSubstr("no answer in 2 s"));
  EXPECT_GE(seconds, 2);
  EXPECT_LT(seconds, 20);
  EXPECT_FALSE(left_process_runs());
  EXPECT_TRUE(probe(hanging, store())->remembered);
}

TEST_F(ProbeTest, WhoHoldsTheStreamsAfterTheChildsEndDelaysNobody) {
  const TimePoint begin = system_clock().now();
  EXPECT_EQ(probe_one("leaves").end, ProbeEnd::kGood);
  EXPECT_LT(to_seconds(system_clock().now() - begin), 50);
  EXPECT_FALSE(left_process_runs());
}

TEST_F(ProbeTest, CanBeCancelled) {
  ProbeRequest hanging = request("hangs");
  hanging.cancelled = [] { return true; };
  const auto report = probe(hanging, store());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(store().find("hangs").has_value());
}

TEST_F(ProbeTest, AChildGetsTheEnvironmentAndNothingElseOfOurs) {
  const int open_file = open("/dev/null", O_RDONLY);  // not closed by exec
  ASSERT_GE(open_file, 0);
  const auto old_handler = signal(SIGPIPE, SIG_IGN);
  sigset_t usr1;
  sigset_t old_mask;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &old_mask);
  setenv("TROIKA_PROBE_TEST", "1", 1);
  EXPECT_EQ(run("files").code, 0);
  EXPECT_EQ(run("signals").code, 0);
  EXPECT_EQ(run("input").code, 0);
  EXPECT_EQ(run("environment").code, 5);
  unsetenv("TROIKA_PROBE_TEST");
  pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  signal(SIGPIPE, old_handler);
  close(open_file);
}

TEST_F(ProbeTest, OutputIsBoundedAndItsEndIsKept) {
  ChildCommand command;
  command.arguments = {TROIKA_PROBED_CHILD, folder_, "endless"};
  command.time_limit = std::chrono::seconds(60);
  command.max_output_bytes = 100;
  EXPECT_EQ(run_child(command)->end, ChildOutcome::End::kWroteTooMuch);
  command.arguments[2] = "endless-errors";
  command.time_limit = std::chrono::milliseconds(300);
  const auto outcome = run_child(command);
  EXPECT_EQ(outcome->end, ChildOutcome::End::kTimedOut);
  EXPECT_LE(outcome->last_words.size(), 4096u);
  EXPECT_THAT(outcome->last_words, HasSubstr("and so on\n"));
}

TEST_F(ProbeTest, LeavesNoFileOpen) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  run("silent");
  const auto before = open_files();
  for (int i = 0; i < 5; ++i) {
    run("exit");
    run("silent");
    ChildCommand nothing;
    nothing.arguments = {"/nonexistent"};
    EXPECT_FALSE(run_child(nothing).has_value());
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(ProbeTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      const char* const names[] = {"refused", "segfault", "exit", "silent"};
      const ProbeEnd ends[] = {ProbeEnd::kRefused, ProbeEnd::kCrashed, ProbeEnd::kExited,
                               ProbeEnd::kNonsense};
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(probe_one(names[i % 4]).end, ends[i % 4]);
        EXPECT_EQ(run("exit").code, 77);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

DeviceInfo some_info() {
  DeviceInfo info;
  info.name = "npu:x@1";
  info.kind = DeviceKind::kGpu;
  info.description = "a chip";
  info.version = "driver 3";
  info.cores = {1, 2};
  info.threads = 2;
  info.standard_rows = {1, 32};
  info.n_tile = 32;
  info.k_tile = 64;
  info.exact = false;
  info.strided = false;
  info.unified_memory = false;
  info.paged_attention = false;
  info.capacity_bytes = int64_t{1} << 40;
  info.facts = {{"z", "last comes first"}, {"a", "b"}};
  return info;
}

TEST(InfoJson, ComesBackAsItWas) {
  for (const DeviceInfo& info : {some_info(), [] {
                                   DeviceInfo least;
                                   least.name = std::string("x");
                                   return least;
                                 }()}) {
    const auto back = info_from_json(to_json(info));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(to_json(*back).dump(), to_json(info).dump());
  }
}

TEST(InfoJson, NothingElseIsTaken) {
  const auto with = [](const char* key, nlohmann::ordered_json value) {
    nlohmann::ordered_json changed = to_json(some_info());
    changed[key] = std::move(value);
    return changed;
  };
  using nlohmann::ordered_json;
  const std::vector<ordered_json> bad = {
      nullptr,
      7,
      ordered_json::array(),
      ordered_json::object(),
      with("name", ""),
      with("name", 3),
      with("name", std::string(10000, 'x')),
      with("kind", "toaster"),
      with("cores", "0-3"),
      with("cores", ordered_json::array({-1})),
      with("cores", ordered_json::array({1.5})),
      with("cores", std::vector<int>(100000, 1)),
      with("standard_rows", ordered_json::array({0})),
      with("standard_rows", ordered_json::array({32, 1})),
      with("standard_rows", ordered_json::array({int64_t{1} << 40})),
      with("n_tile", 0),
      with("n_tile", "16"),
      with("k_tile", int64_t{1} << 60),
      with("facts", ordered_json::array()),
      with("facts", {{"a", 1}}),
  };
  for (const ordered_json& value : bad) {
    EXPECT_FALSE(info_from_json(value).has_value()) << value.dump().substr(0, 200);
  }
}

}  // namespace
}  // namespace troika::device
