// Help, version, completion, unknown verbs and flags, hostile values, the environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kNotFound = 3;

const std::vector<std::string>& all_verbs() {
  static const std::vector<std::string> names = {
      "run",  "chat",     "bench", "inspect", "tokenize", "perplexity", "devices",   "doctor",
      "plan", "simulate", "sweep", "gallery", "trace",    "synth",      "completion"};
  return names;
}

TEST(Verbs, HelpListsThemAll) {
  for (const auto& arguments : {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
    const Outcome help = troika_run(arguments);
    EXPECT_EQ(help.exit_code, 0);
    for (const std::string& verb : all_verbs()) EXPECT_THAT(help.out, HasSubstr("  " + verb));
  }
}

TEST(Verbs, EachHasHelpWithExamples) {
  for (const std::string& verb : all_verbs()) {
    const Outcome help = troika_run({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0) << verb;
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, HasSubstr("Usage: troika " + verb));
    EXPECT_THAT(help.out, HasSubstr("Examples:\n"));
    EXPECT_THAT(help.out, HasSubstr("troika " + verb + " "));
  }
}

TEST(Verbs, VersionNamesCommitCompilerAndKernels) {
  const Outcome version = troika_run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("troika "));
  for (const char* part : {"commit:", "compiler:", "kernels:", "portable"}) {
    EXPECT_THAT(version.out, HasSubstr(part));
  }
}

TEST(Verbs, UnknownOnesAreTold) {
  expect_error(troika_run({}), kUsage, "no verb");
  expect_error(troika_run({"rum"}), kUsage, "did you mean 'run'?");
  expect_error(troika_run({"--nonsense"}), kUsage, "unknown verb '--nonsense'");
  expect_error(troika_run({"a\nb\x1b[31m"}), kUsage, "'a\\nb\\x1b[31m'");
  expect_error(troika_run({"help", "nothing"}), kUsage, "unknown verb");
}

TEST(Verbs, CompletionScriptsNameVerbsAndFlags) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = troika_run({"completion", "--shell", shell});
    EXPECT_EQ(script.exit_code, 0);
    for (const char* part : {"perplexity", "ctx-size", "ctk"}) {
      EXPECT_THAT(script.out, HasSubstr(part)) << shell;
    }
  }
  EXPECT_EQ(troika_run({"--list-devices"}).out, troika_run({"devices"}).out);
  EXPECT_EQ(troika_run({"--completion-bash"}).out, troika_run({"completion"}).out);
  expect_error(troika_run({"completion", "--shell", "csh"}), kUsage, "allowed: bash, zsh, fish");
}

TEST(Verbs, BashAcceptsTheCompletionScript) {
  const std::string file = scratch_folder() + "/completion.bash";
  std::ofstream(file) << troika_run({"completion"}).out;
  const std::string try_it =
      "bash -c 'source " + file +
      " && COMP_WORDS=(troika run --ctx) COMP_CWORD=2 && _troika && test \"${COMPREPLY[0]}\" = "
      "--ctx-size'";
  EXPECT_EQ(std::system(try_it.c_str()), 0);
}

TEST(Verbs, ZshAndFishAcceptTheirs) {
  std::string absent;
  for (const std::string shell : {"zsh", "fish"}) {
    if (std::system((shell + " -c true >/dev/null 2>&1").c_str()) != 0) {
      absent += " " + shell;
      continue;
    }
    const std::string file = scratch_folder() + "/completion." + shell;
    std::ofstream(file) << troika_run({"completion", "--shell", shell}).out;
    EXPECT_EQ(std::system((shell + " -n " + file).c_str()), 0) << shell;
  }
  if (!absent.empty()) GTEST_SKIP() << "not installed:" << absent;
}

struct BadFlag {
  std::vector<std::string> arguments;
  std::string part;
};

TEST(Flags, HostileValuesAreRefusedByName) {
  const std::vector<BadFlag> cases = {
      {{"run", "-p", "a", "-n", "-2"}, "--predict: '-2' is out of range"},
      {{"run", "-p", "a", "-n", "1.5"}, "--predict: '1.5' is not a whole number"},
      {{"run", "-p", "a", "-n", ""}, "--predict: ''"},
      {{"run", "-p", "a", "-n", "99999999999999999999"}, "--predict"},
      {{"run", "-p", "a", "-c", "-1"}, "--ctx-size: '-1' is out of range"},
      {{"run", "-p", "a", "-c", "2147483647000"}, "--ctx-size"},
      {{"run", "-p", "a", "-t", "many"}, "--threads: 'many'"},
      {{"run", "-p", "a", "--temp", "nan"}, "--temp: 'nan' is out of range"},
      {{"run", "-p", "a", "--temp", "inf"}, "--temp"},
      {{"run", "-p", "a", "--temp", "1e99999"}, "--temp"},
      {{"run", "-p", "a", "--temp", "-0.5"}, "--temp"},
      {{"run", "-p", "a", "--top-p", "1.01"}, "--top-p: '1.01' is out of range; allowed: 0 to 1"},
      {{"run", "-p", "a", "--min-p", "-1"}, "--min-p"},
      {{"run", "-p", "a", "--top-k", "-1"}, "--top-k"},
      {{"run", "-p", "a", "--top-k", "2147483647"}, "allowed: 0 to 1073741824"},
      {{"run", "-p", "a", "--repeat-penalty", "0"}, "--repeat-penalty"},
      {{"run", "-p", "a", "-s", "-7"}, "--seed"},
      {{"run", "-p", "a", "-ub", "0"}, "--ubatch-size"},
      {{"run", "-p", "a", "--logprobs", "100000"}, "--logprobs"},
      {{"run", "-p", "a", "--stop", ""}, "--stop"},
      {{"run", "-p"}, "-p needs a value"},
      {{"run", "-p", "a", "-m", ""}, "--model: '' names no file"},
      {{"inspect", "--model="}, "--model: '' names no file"},
      {{"run", "-p", "a", "--trace", ""}, "--trace: ''"},
      {{"run", "-p", "a", "--device", ""}, "--device: '' is no LIST; give one, or leave it out"},
      {{"run", "-p", "a", "--split="}, "--split: '' is no RULE"},
      {{"devices", "--device", ""}, "--device: ''"},
      {{"bench", "-ctk", ""}, "--cache-type-k: ''"},
      {{"run", "-p", "a", "-f", "b"}, "both --prompt and --file"},
      {{"run", "hello"}, "a prompt goes after -p"},
      {{"run", "-p", "a", "--tmp", "1"}, "did you mean --temp?"},
      {{"run", "-p", "a", "-hf", "x/y"}, "option '-hf' is not known"},
      {{"bench", "-p", "9-1"}, "no range"},
      {{"bench", "-p", "0", "-n", "0"}, "nothing to measure"},
      {{"bench", "-r", "0"}, "--repetitions"},
      {{"bench", "-o", "xml"}, "allowed: md, json, jsonl, csv"},
      {{"synth", "-o", "x"}, "--shape is missing"},
      {{"synth", "--shape", "tiny"}, "-o is missing"},
      {{"synth", "--shape", "tiny", "--type", "Q9", "-o", "x"}, "--type: 'Q9'"},
      {{"synth", "--shape", "1,2,3", "-o", "x"}, "shape"},
  };
  for (const BadFlag& bad : cases) {
    SCOPED_TRACE(bad.part);
    expect_error(troika_run(bad.arguments), kUsage, bad.part);
  }
}

TEST(Flags, AContextBeyondTheTrainedOneIsWarnedOfOnce) {
  for (const char* verb : {"run", "perplexity"}) {
    const auto with_context = [verb](const char* context) {
      std::vector<std::string> arguments = {verb, "-m", tiny_model(), "-p", "a b", "-c", context};
      if (std::string(verb) == "run") arguments.insert(arguments.end(), {"-n", "1"});
      const Outcome outcome = troika_run(arguments);
      EXPECT_EQ(outcome.exit_code, 0) << verb;
      return outcome.err;
    };
    const std::string err = with_context("2049");
    const std::string warning = "warning: the context of 2049 tokens is longer than the 2048";
    EXPECT_THAT(err, HasSubstr(warning)) << verb;
    EXPECT_EQ(err.find("warning: the context"), err.rfind("warning: the context")) << verb;
    EXPECT_THAT(with_context("2048"), Not(HasSubstr("warning: the context"))) << verb;
  }
}

TEST(Flags, TypesOfTheCacheMustBeKnownAndEqual) {
  const std::string& model = tiny_model();
  expect_error(troika_run({"run", "-m", model, "-p", "a", "-ctk", "q8_0"}), kUsage,
               "--cache-type-k: 'q8_0' is not a type of the KV cache; allowed: f32, f16");
  expect_error(troika_run({"run", "-m", model, "-p", "a", "-ctk", "f16", "-ctv", "f32"}), kUsage,
               "they must be equal");
}

TEST(Flags, TheEnvironmentIsReadAndTheCommandLineWins) {
  const auto tokens = [](const std::map<std::string, std::string>& environment,
                         std::vector<std::string> more) {
    Command command;
    command.arguments = {"run", "-m", tiny_model(), "--raw", "--ignore-eos", "-p", "a", "--json"};
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
    command.environment = environment;
    return expect_json(run(command))["tokens"].size();
  };
  EXPECT_EQ(tokens({{"LLAMA_ARG_N_PREDICT", "3"}}, {}), 3u);
  EXPECT_EQ(tokens({{"LLAMA_ARG_N_PREDICT", "3"}, {"TROIKA_N_PREDICT", "4"}}, {}), 4u);
  EXPECT_EQ(tokens({{"LLAMA_ARG_N_PREDICT", "3"}}, {"-n", "5"}), 5u);

  Command bad;
  bad.arguments = {"run", "-m", tiny_model(), "-p", "a"};
  bad.environment = {{"LLAMA_ARG_CTX_SIZE", "lots"}};
  expect_error(run(bad), kUsage, "LLAMA_ARG_CTX_SIZE: 'lots' is not a whole number");
  bad.environment = {{"TROIKA_MODEL", ""}};
  bad.arguments = {"run", "-p", "a"};
  expect_error(run(bad), kUsage, "TROIKA_MODEL: '' names no file");
}

TEST(Model, FilesThatAreNoModelsAreRefusedAtOnce) {
  const std::string& folder = scratch_folder();
  const std::string fifo = folder + "/fifo";
  mkfifo(fifo.c_str(), 0600);
  std::ofstream(folder + "/empty.gguf").flush();
  std::ofstream(folder + "/magic.gguf") << "GGUF";
  std::ofstream(folder + "/text.gguf") << "This is no model at all, but it is long enough.";
  const std::vector<std::pair<std::string, int>> cases = {{"/nonexistent.gguf", kNotFound},
                                                          {folder, kUsage},
                                                          {fifo, kUsage},
                                                          {"/dev/zero", kUsage},
                                                          {folder + "/empty.gguf", 4},
                                                          {folder + "/magic.gguf", 4},
                                                          {folder + "/text.gguf", 4}};
  for (const auto& [path, code] : cases) {
    for (const char* verb : {"run", "tokenize", "inspect", "perplexity"}) {
      SCOPED_TRACE(path + " " + verb);
      std::vector<std::string> arguments = {verb, "-m", path};
      if (std::string(verb) != "inspect") arguments.insert(arguments.end(), {"-p", "a b c"});
      const Outcome outcome = troika_run(arguments);
      expect_error(outcome, code, path);
      expect_quick_and_small(outcome);
    }
  }
}

TEST(Model, TheDefaultIsFoundBesideTheProgramOrTold) {
  Command elsewhere;
  elsewhere.arguments = {"tokenize", "-p", "Hello", "--ids"};
  elsewhere.folder = scratch_folder();
  const Outcome outcome = run(elsewhere);
  if (default_model().empty()) {
    expect_error(outcome, kNotFound, "run scripts/bootstrap");
    GTEST_SKIP() << "the default model is not installed; only its absence was tested";
  }
  EXPECT_EQ(outcome.out, "[19556]\n") << outcome.err;
}

}  // namespace
}  // namespace troika
