// `troika trace`: the report, the files it writes, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kInvalidData = 4;
constexpr int kIo = 8;

// Two devices, two passes; one task waited.
constexpr const char* kTwoDevices = R"({"otherData": {"simulated": true, "title": "a model"},
"traceEvents": [
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"cpu@0"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"npu"}},
{"name":"G1 layer 0","ph":"X","pid":1,"tid":1,"ts":100,"dur":50,
 "args":{"pass":0,"layer":0,"rows":8,"bytes":100000,"macs":1000000}},
{"name":"G2 layer 0","ph":"X","pid":1,"tid":2,"ts":150,"dur":50,
 "args":{"pass":0,"layer":0,"rows":8,"wait_us":40}},
{"name":"head","ph":"X","pid":1,"tid":1,"ts":400,"dur":10,"args":{"pass":1,"rows":1}}
]})";

std::string file_with(const std::string& name, const std::string& text) {
  std::string path = scratch_folder() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Trace, ReportsARun) {
  const std::string file = scratch_folder() + "/run.json";
  const Outcome made = troika_run(
      {"run", "-m", tiny_model(), "-p", "Hello", "-n", "4", "--ignore-eos", "--trace", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome report = troika_run({"trace", file});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.err, "");
  EXPECT_THAT(report.out, StartsWith("measured: "));
  for (const char* part : {"\ndevice ", "\ncpu ", "\nphase ", "\nprefill ", "\ndecode ", "\nstage ",
                           "\nG1 ", "\nattention ", "\nhead ", "\nlongest tasks "}) {
    EXPECT_THAT(report.out, HasSubstr(part));
  }
  const json summary = expect_json(troika_run({"trace", file, "--json"}));
  EXPECT_NE(summary["title"], "");
  EXPECT_NE(summary["description"], "");
  ASSERT_EQ(summary["devices"].size(), 1u);
  EXPECT_EQ(summary["devices"][0]["name"], "cpu");
  EXPECT_NE(summary["devices"][0]["description"], "");
  EXPECT_EQ(summary["devices"][0]["joins"], 0);
  EXPECT_GT(summary["devices"][0]["busy_share"], 0);
  EXPECT_LE(summary["devices"][0]["busy_share"], 1);
  EXPECT_EQ(summary["phases"][0]["passes"], 1);
  EXPECT_EQ(summary["phases"][1]["passes"], 3);
}

TEST(Trace, TellsWhoWaited) {
  const std::string file = file_with("two.json", kTwoDevices);
  const json summary = expect_json(troika_run({"trace", file, "--json", "--longest", "1"}));
  EXPECT_EQ(summary["simulated"], true);
  EXPECT_EQ(summary["title"], "a model");
  EXPECT_EQ(summary["span_us"], 310);
  EXPECT_EQ(summary["devices"][0]["busy_us"], 60);
  EXPECT_EQ(summary["devices"][0]["stage_us"], json::parse(R"({"G1": 50, "head": 10})"));
  EXPECT_EQ(summary["devices"][1]["joins"], 1);
  EXPECT_EQ(summary["devices"][1]["wait_us"], 40);
  EXPECT_EQ(summary["phases"][0]["name"], "prefill");
  EXPECT_EQ(summary["phases"][0]["devices"][1]["busy_share"], 0.5);
  EXPECT_EQ(summary["longest"].size(), 1u);
  EXPECT_THAT(troika_run({"trace", file}).out, StartsWith("SIMULATED, not measured"));
}

TEST(Trace, ReadsStandardInput) {
  Command command;
  command.arguments = {"trace", "-", "--json"};
  command.input = kTwoDevices;
  EXPECT_EQ(expect_json(run(command))["tasks"], 3);
}

TEST(Trace, WritesThePageTheEventsAndTheReport) {
  const std::string file = file_with("two.json", kTwoDevices);
  const std::string page = scratch_folder() + "/page.html";
  const std::string chrome = scratch_folder() + "/chrome.json";
  const std::string report = scratch_folder() + "/report.json";
  const Outcome both = troika_run({"trace", file, "--html", page, "--chrome", chrome});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(both.out, "");
  EXPECT_EQ(both.err, "");
  EXPECT_THAT(contents(page), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(contents(page), HasSubstr("a model"));
  const json events = json::parse(contents(chrome));
  EXPECT_EQ(events["otherData"]["simulated"], true);

  EXPECT_EQ(troika_run({"trace", file, "--json", "-o", report}).out, "");
  EXPECT_EQ(contents(report), troika_run({"trace", file, "--json"}).out);
  // What was rewritten is the same trace.
  EXPECT_EQ(contents(report), troika_run({"trace", chrome, "--json"}).out);
  EXPECT_EQ(contents(chrome), troika_run({"trace", chrome, "--chrome", "-"}).out);
  EXPECT_EQ(contents(page), troika_run({"trace", chrome, "--html", "-"}).out);
}

TEST(Trace, OfNoTasksIsToldAsSuch) {
  const std::string file = file_with("none.json", R"({"traceEvents": []})");
  const Outcome report = troika_run({"trace", file});
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_THAT(report.out, HasSubstr("0 tasks"));
  EXPECT_EQ(troika_run({"trace", file, "--html", scratch_folder() + "/none.html"}).exit_code, 0);
}

TEST(Trace, RefusesWhatIsNoTraceByName) {
  const std::string& folder = scratch_folder();
  const std::string fifo = folder + "/trace-fifo";
  mkfifo(fifo.c_str(), 0600);
  const std::string bad_event =
      file_with("bad.json",
                R"([{"ph":"X","name":"a","ts":0,"dur":0},{"ph":"X","name":"a","ts":-1,"dur":0}])");
  const std::vector<std::tuple<std::string, int, std::string>> cases = {
      {"/nonexistent.json", kNotFound, "/nonexistent.json"},
      {folder, kUsage, "not a regular file"},
      {fifo, kUsage, "troika trace -"},
      {"/dev/zero", kUsage, "not a regular file"},
      {file_with("empty.json", ""), kInvalidData, "empty.json: trace: not valid JSON"},
      {file_with("text.json", "This is no trace."), kInvalidData, "not valid JSON"},
      {file_with("cut.json", std::string(kTwoDevices).substr(0, 400)), kInvalidData, "in event 3"},
      {file_with("plan.json", R"({"version": 1, "devices": ["cpu"]})"), kInvalidData,
       "traceEvents is missing"},
      {file_with("deep.json", std::string(1 << 20, '[')), kInvalidData, "event 0 is not an object"},
      {bad_event, kInvalidData, "event 1: ts is -1, not a number from 0"},
  };
  for (const auto& [path, code, part] : cases) {
    SCOPED_TRACE(path);
    const Outcome outcome = troika_run({"trace", path, "--html", folder + "/never.html"});
    expect_error(outcome, code, part);
    expect_quick_and_small(outcome);
  }
  EXPECT_FALSE(fs::exists(folder + "/never.html"));
}

TEST(Trace, RefusesFlagsThatCannotBeMeant) {
  const std::string file = file_with("two.json", kTwoDevices);
  expect_error(troika_run({"trace"}), kUsage, "no trace given");
  expect_error(troika_run({"trace", file, "more"}), kUsage, "argument 'more' is not known");
  expect_error(troika_run({"trace", file, "--htm", "x"}), kUsage, "did you mean --html?");
  expect_error(troika_run({"trace", file, "--html"}), kUsage, "--html needs a value");
  expect_error(troika_run({"trace", file, "--longest", "-1"}), kUsage, "--longest: '-1'");
  for (const char* flag : {"--html", "--chrome", "-o"}) {
    expect_error(troika_run({"trace", file, flag, "/nonexistent/x"}), kIo, "/nonexistent/x");
  }
}

TEST(Trace, FilesThatAreReadAreNotOverwritten) {
  const std::string file = file_with("kept.json", kTwoDevices);
  const std::string link = scratch_folder() + "/kept-link.json";
  fs::remove(link);
  fs::create_symlink(file, link);
  for (const char* flag : {"--html", "--chrome", "-o", "--log-file"}) {
    SCOPED_TRACE(flag);
    expect_error(troika_run({"trace", file, flag, link}), kUsage, "it would be lost");
  }
  expect_error(troika_run({"trace", file, "--html", "-", "--chrome", "-"}), kUsage,
               "both write to standard output");
  EXPECT_EQ(contents(file), kTwoDevices);

  const std::string model = scratch_folder() + "/kept.gguf";
  fs::copy_file(tiny_model(), model, fs::copy_options::overwrite_existing);
  for (const char* flag : {"--trace", "--log-file"}) {
    SCOPED_TRACE(flag);
    expect_error(troika_run({"run", "-m", model, "-p", "Hello", "-n", "1", flag, model}), kUsage,
                 "it would be lost");
  }
  EXPECT_EQ(contents(model), contents(tiny_model()));
}

// It is no file that a flag names.
TEST(Trace, TheDefaultModelIsNotOverwritten) {
  const std::string model = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  Command command;
  command.folder = scratch_folder() + "/of-default";
  fs::create_directories(command.folder + "/models");
  fs::copy_file(tiny_model(), command.folder + "/" + model, fs::copy_options::overwrite_existing);
  command.arguments = {"run", "-p", "Hello", "-n", "1", "--trace", model};
  expect_error(run(command), kUsage, "is the model, which would be lost");
  EXPECT_EQ(contents(command.folder + "/" + model), contents(tiny_model()));
}

}  // namespace
}  // namespace troika
