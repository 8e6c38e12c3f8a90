// Runs the program on emulated processors that lack instruction sets of this machine: it must start
// and answer there, never die of an illegal instruction.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/repository.h"

namespace {

const std::string kModel = troika::repository_path("tests/models/q4_1-like-default.gguf");
const std::string kGolden = troika::repository_path("tests/golden/tiny/q4_1-like-default.json");

struct Outcome {
  int exit_code = -1;  // 128 + signal if a signal ended it, as a shell says
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) outcome.output.append(buffer, n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

class OldCpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "this build is not for x86-64, so qemu-x86_64 cannot run it";
#endif
    if (*TROIKA_SANITIZED != 0) GTEST_SKIP() << "sanitizers do not run under qemu";
    if (run("command -v qemu-x86_64").exit_code != 0) {
      GTEST_SKIP() << "no qemu-x86_64 here; scripts/bootstrap installs it (package qemu-user)";
    }
  }

  Outcome troika(const std::string& arguments) {
    return run(std::string("qemu-x86_64 -cpu ") + GetParam() + " " TROIKA_PROGRAM " " + arguments +
               " 2>/dev/null </dev/null");
  }
};

TEST_P(OldCpu, TellsItsVersion) {
  const Outcome outcome = troika("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.output.find("0."), std::string::npos) << outcome.output;
}

TEST_P(OldCpu, AnswersAsTheReferenceDoes) {
  std::ifstream file(kGolden);
  ASSERT_TRUE(file) << kGolden;
  const auto golden = nlohmann::json::parse(file)["cases"][0];
  const std::string text = golden["text"];
  const Outcome outcome = troika("run -m " + kModel + " -p '" + text +
                                 "' --raw --temp 0 -n 8 --ignore-eos --json -t 1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto answer = nlohmann::json::parse(outcome.output, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << outcome.output;
  EXPECT_EQ(answer["prompt_tokens"], golden["ids"]);
  EXPECT_EQ(answer["tokens"], golden["greedy"]);
}

// Nehalem has no AVX, Haswell has AVX2 and no AVX-512.
INSTANTIATE_TEST_SUITE_P(X86, OldCpu, testing::Values("Nehalem", "Haswell"),
                         [](const auto& cpu) { return std::string(cpu.param); });

}  // namespace
