// `troika simulate` and `troika sweep`: forecasts for described chips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kInvalidData = 4;
constexpr const char* kShape = "1024,3,8,4,2816,4096";

std::vector<std::string> simulate(std::vector<std::string> more) {
  std::vector<std::string> all = {"simulate", "--soc", "snapdragon-8-gen-3", "--shape", kShape,
                                  "--budget", "20"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Simulate, PrintsTheFiguresThatEnginesAreMeasuredIn) {
  const Outcome outcome = troika_run(simulate({"-p", "64", "-n", "8"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, StartsWith("snapdragon-8-gen-3, 1024,3,8,4,2816,4096, 64 tokens in"));
  EXPECT_THAT(outcome.out, HasSubstr("simulated from a description, not measured"));
  for (const char* name : {"ttft_ms", "prefill_tok_s", "tpot_ms", "decode_tok_s", "energy_j",
                           "power_w", "error_band_pct", "bound_ms"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\n") + name + " "));
  }
  EXPECT_THAT(outcome.out, HasSubstr("\nnpu "));
  EXPECT_THAT(outcome.out, HasSubstr("troika bench -m MODEL.gguf -p 64 -n 8 -d 0,64 --device"));
}

TEST(Simulate, JsonHasTheSameAndSaysSimulated) {
  const json found = expect_json(troika_run(simulate({"--json", "--strategy", "layer"})));
  EXPECT_EQ(found["simulated"], true);
  EXPECT_EQ(found["strategy"], "layer");
  EXPECT_EQ(found["units"].size(), 3u);
  EXPECT_GT(found["ttft_ms"], found["bound_ms"]);
  EXPECT_TRUE(found.contains("error_band_pct"));
  const json roofline = expect_json(
      troika_run(simulate({"--json", "--strategy", "layer", "--fidelity", "roofline"})));
  EXPECT_LT(roofline["ttft_ms"], found["ttft_ms"]);
  const json noisy =
      expect_json(troika_run(simulate({"--json", "--strategy", "layer", "--noise", "0.05"})));
  EXPECT_GT(noisy["ttft_p90_ms"], found["ttft_ms"]);
}

TEST(Simulate, TellsHowManyFramesOfAGameAreLeft) {
  const json found = expect_json(
      troika_run(simulate({"--json", "--strategy", "single:gpu", "--frames", "gpu,60,4"})));
  EXPECT_LT(found["prefill_frames"][0], 0.5);
  const Outcome text = troika_run(simulate({"--strategy", "layer", "--frames", "gpu,60,4"}));
  EXPECT_THAT(text.out, HasSubstr("of 60 frames a second on gpu in prefill"));
}

TEST(Simulate, ItsTraceIsReadByTheTraceVerbAndItsPageNeedsNothingElse) {
  const std::string trace = scratch_folder() + "/simulated.json";
  const std::string page = scratch_folder() + "/simulated.html";
  const Outcome outcome =
      troika_run(simulate({"-p", "64", "--trace", trace, "--html", page, "--json"}));
  const json found = expect_json(outcome);
  const json summary = expect_json(troika_run({"trace", trace, "--json"}));
  EXPECT_EQ(summary["simulated"], true);
  EXPECT_EQ(summary["passes"], 2);
  EXPECT_NEAR(summary["span_us"].get<double>() / 1e3,
              found["ttft_ms"].get<double>() + found["tpot_ms"].get<double>(),
              0.1 * found["tpot_ms"].get<double>());
  const std::string html = text_of(page);
  EXPECT_THAT(html, HasSubstr("simulated"));
  EXPECT_THAT(html, ::testing::Not(HasSubstr("src=\"http")));
}

TEST(Simulate, WhatCannotBeMeantIsRefused) {
  expect_error(troika_run({"simulate", "--shape", kShape}), kUsage, "--soc NAME is needed");
  expect_error(troika_run({"simulate", "--soc", "snapdragon-8-gen-3"}), kUsage, "--shape SHAPE");
  expect_error(troika_run(simulate({"--stack", "vulkan"})), kNotFound, "has no stack 'vulkan'");
  expect_error(troika_run(simulate({"--strategy", "best"})), kUsage, "'best' is not known");
  expect_error(troika_run(simulate({"--load", "gpu"})), kUsage, "--load");
  expect_error(troika_run(simulate({"--load", "gpu,2"})), kUsage, "--load, PART");
  expect_error(troika_run(simulate({"--frames", "gpu,60"})), kUsage, "--frames");
  expect_error(troika_run(simulate({"--load", "dsp,0.5"})), kUsage, "'dsp'");
  expect_error(troika_run({"simulate", "--soc", "z80", "--shape", kShape}), kNotFound, "z80");
}

std::vector<std::string> sweep(const std::string& output, std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"sweep",
                                  "--soc",
                                  "snapdragon-8-gen-3,core-ultra-5-125h",
                                  "--shape",
                                  "smollm2-135m",
                                  "-p",
                                  "32,64",
                                  "-n",
                                  "4",
                                  "--strategy",
                                  "single:gpu,layer",
                                  "-o",
                                  output};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream in(text_of(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Sweep, WritesARowForEachCaseAndDoesNoneTwice) {
  const std::string path = scratch_folder() + "/sweep.jsonl";
  const Outcome first = troika_run(sweep(path));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("8 of 8 forecasts are in"));
  std::vector<std::string> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 8u);
  for (const std::string& line : lines) {
    const json row = json::parse(line);
    EXPECT_EQ(row["simulated"], true);
    EXPECT_GT(row["ttft_ms"], 0);
    EXPECT_EQ(row["model"], "smollm2-135m");
  }
  EXPECT_EQ(troika_run(sweep(path)).exit_code, 0);
  EXPECT_EQ(lines_of(path), lines);
  // An interrupted write: three rows and a half.
  std::ofstream(path) << lines[0] << "\n"
                      << lines[1] << "\n"
                      << lines[2] << "\n"
                      << lines[3].substr(0, 40);
  EXPECT_EQ(troika_run(sweep(path)).exit_code, 0);
  std::vector<std::string> again = lines_of(path);
  std::sort(lines.begin(), lines.end());
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, lines);
  // Other settings are other rows.
  EXPECT_EQ(troika_run(sweep(path, {"--sync", "predict"})).exit_code, 0);
  EXPECT_EQ(lines_of(path).size(), 16u);
}

TEST(Sweep, WritesCsvWithOneHeader) {
  const std::string path = scratch_folder() + "/sweep.csv";
  ASSERT_EQ(troika_run(sweep(path, {"--format", "csv"})).exit_code, 0);
  std::vector<std::string> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_THAT(lines[0], StartsWith("soc,stack,model,prompt,generate,strategy,settings,simulated,"));
  std::ofstream(path) << lines[0] << "\n" << lines[1] << "\n";
  ASSERT_EQ(troika_run(sweep(path, {"--format", "csv"})).exit_code, 0);
  EXPECT_EQ(lines_of(path).size(), 9u);
}

TEST(Sweep, CtrlCEndsItAndTheSameCommandGoesOn) {
  const std::string path = scratch_folder() + "/interrupted.jsonl";
  const std::vector<std::string> long_sweep = {
      "sweep", "--soc", "snapdragon-8-gen-3", "--shape", "llama-3-8b", "-p", "16-512+16",
      "-n",    "4",     "--strategy",         "layer",   "-t",         "1",  "-o",
      path};
  Command command;
  command.arguments = long_sweep;
  bool sent = false;
  command.watch = [&](pid_t pid, const Outcome&) {
    if (!sent && !lines_of(path).empty()) {
      kill(pid, SIGINT);
      sent = true;
    }
  };
  const Outcome outcome = run(command);
  const size_t rows = lines_of(path).size();
  ASSERT_GE(rows, 1u);
  if (rows < 32) {
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("the same command goes on"));
  }
  EXPECT_EQ(troika_run(long_sweep).exit_code, 0);
  EXPECT_EQ(lines_of(path).size(), 32u);
}

TEST(Gallery, ShowsEveryStrategyOnOnePageThatNeedsNothingElse) {
  const std::string path = scratch_folder() + "/gallery.html";
  const Outcome outcome =
      troika_run({"gallery", "--soc", "snapdragon-8-gen-3", "--shape", "smollm2-135m", "-p", "64",
                  "-n", "4", "--strategy", "single:gpu,layer,single:dsp", "-o", path});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string html = text_of(path);
  EXPECT_THAT(html, HasSubstr("Simulated from descriptions, not measured"));
  EXPECT_THAT(html, HasSubstr("<td>layer</td>"));
  EXPECT_THAT(html, HasSubstr("<td>single:dsp</td><td colspan=\"5\">cannot be: "));
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, ::testing::Not(HasSubstr("http")));
  EXPECT_THAT(html, ::testing::Not(HasSubstr("<script")));
}

TEST(Sweep, AFileOfSomethingElseStaysAsItIs) {
  const std::string path = scratch_folder() + "/notes.txt";
  std::ofstream(path) << "do not touch\n";
  expect_error(troika_run(sweep(path)), kInvalidData, "line 1 is not a row of a sweep");
  EXPECT_EQ(text_of(path), "do not touch\n");
  std::ofstream(path) << "no line end";
  expect_error(troika_run(sweep(path)), kInvalidData, "not rows of a sweep");
  EXPECT_EQ(text_of(path), "no line end");
}

}  // namespace
}  // namespace troika
