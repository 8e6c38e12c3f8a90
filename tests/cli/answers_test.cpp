// run, chat, tokenize, perplexity, inspect, bench: what they print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"
#include "tests/repository.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kUsage = 2;
constexpr int kContextFull = 7;
constexpr int kIo = 8;
constexpr int kCancelled = 11;

// `troika VERB -m tiny ...`
std::vector<std::string> tiny(const std::string& verb, std::vector<std::string> more) {
  std::vector<std::string> arguments = {verb, "-m", tiny_model()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Fills a context of 60000 tokens, for which the model is trained.
std::vector<std::string> endless_run() {
  return {"run", "-m",   long_context_model(), "-p", "Hello", "--raw", "--ignore-eos", "-n", "-1",
          "-c",  "60000"};
}

Outcome with_input(std::vector<std::string> arguments, std::string input) {
  Command command;
  command.arguments = std::move(arguments);
  command.input = std::move(input);
  return run(command);
}

TEST(Run, JsonHasEveryKeyAndNothingElseIsPrinted) {
  const Outcome outcome = troika_run(tiny("run", {"-p", "Hello", "--raw", "--temp", "0", "-n", "8",
                                                  "--json", "--logprobs", "3", "--ignore-eos"}));
  EXPECT_EQ(outcome.err, "");
  const json answer = expect_json(outcome);
  EXPECT_FALSE(answer["prompt_tokens"].empty());
  EXPECT_EQ(answer["tokens"].size(), 8u);
  EXPECT_TRUE(answer["text"].is_string());
  EXPECT_EQ(answer["finish_reason"], "length");
  for (const char* key : {"ttft_ms", "tpot_ms", "prefill_tok_s", "decode_tok_s", "load_ms"}) {
    EXPECT_GT(answer[key].get<double>(), 0) << key;
  }
  EXPECT_GT(answer["threads"].get<int>(), 0);
  EXPECT_EQ(answer["context"], 2048);
  double shares = 0;
  for (const json& device : answer["devices"]) {
    shares += device["share"].get<double>();
    EXPECT_TRUE(device["name"].is_string());
    EXPECT_GT(device["busy_ms"].get<double>(), 0);
    EXPECT_GE(device["wait_ms"].get<double>(), 0);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  ASSERT_EQ(answer["top_logprobs"].size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    const json& top = answer["top_logprobs"][i];
    ASSERT_EQ(top.size(), 3u);
    EXPECT_EQ(top[0]["id"], answer["tokens"][i]);  // greedy
    EXPECT_LE(top[1]["logprob"].get<double>(), top[0]["logprob"].get<double>());
    EXPECT_LE(top[0]["logprob"].get<double>(), 0);
  }
}

TEST(Run, PipedTextIsPlainAndEqualToTheJson) {
  const std::vector<std::string> flags = {"-p", "Hello", "--temp", "0", "-n", "20"};
  auto as_json = flags;
  as_json.emplace_back("--json");
  const Outcome text = troika_run(tiny("run", flags));
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  std::string expected = expect_json(troika_run(tiny("run", as_json)))["text"];
  if (!expected.ends_with('\n')) expected += '\n';
  EXPECT_EQ(text.out, expected);
}

TEST(Run, TheSameSeedGivesTheSameAnswer) {
  const auto answer = [](const char* seed) {
    return expect_json(troika_run(tiny(
        "run", {"-p", "Hello", "-n", "24", "--ignore-eos", "--temp", "2", "--json", "-s", seed})));
  };
  const json first = answer("5");
  EXPECT_EQ(first["seed"], 5);
  EXPECT_EQ(first["tokens"], answer("5")["tokens"]);
  EXPECT_NE(first["tokens"], answer("6")["tokens"]);
  const json random = answer("-1");
  EXPECT_EQ(random["tokens"], answer(random["seed"].dump().c_str())["tokens"]);
}

TEST(Run, ReadsPromptsFromFilesAndPipes) {
  const std::string file = scratch_folder() + "/prompt.txt";
  std::ofstream(file) << "Once upon a time";
  const auto prompt = [](const Outcome& outcome) { return expect_json(outcome)["prompt_tokens"]; };
  const json direct =
      prompt(troika_run(tiny("run", {"--raw", "--json", "-n", "1", "-p", "Once upon a time"})));
  EXPECT_EQ(prompt(troika_run(tiny("run", {"--raw", "--json", "-n", "1", "-f", file}))), direct);
  for (const auto& more : {std::vector<std::string>{"-f", "-"}, {}}) {
    auto arguments = tiny("run", {"--raw", "--json", "-n", "1"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(prompt(with_input(arguments, "Once upon a time")), direct);
  }
}

TEST(Run, ExtremesOfThePrompt) {
  expect_error(with_input(tiny("run", {"--raw", "-f", "/nonexistent"}), ""), 3, "/nonexistent");
  const json none = expect_json(troika_run(tiny("run", {"-p", "a", "-n", "0", "--json"})));
  EXPECT_TRUE(none["tokens"].empty());
  EXPECT_EQ(none["finish_reason"], "length");
  const json empty = expect_json(troika_run(tiny("run", {"-p", "", "-n", "2", "--json"})));
  EXPECT_FALSE(empty["prompt_tokens"].empty());
  const json broken = expect_json(
      troika_run(tiny("run", {"-p", "a\xff\xfe\xf0\x9f", "-n", "2", "--raw", "--json"})));
  EXPECT_FALSE(broken["prompt_tokens"].empty());
}

TEST(Run, ATooLongPromptIsAnErrorWithBothCounts) {
  const Outcome outcome =
      with_input(tiny("run", {"--raw", "-f", "-"}), std::string(1 << 20, 'x') + " end");
  expect_error(outcome, kContextFull, "2048");
  EXPECT_LT(outcome.seconds, 20);
}

TEST(Run, WrittenWhereNothingCanBeWritten) {
  Command command;
  command.arguments = tiny("run", {"-p", "Hello", "-n", "4"});
  command.out_path = "/dev/full";
  expect_error(run(command), kIo, "cannot write to standard output");
  command.arguments = {"--help"};
  expect_error(run(command), kIo, "cannot write to standard output");
}

TEST(Run, AClosedPipeEndsItQuietly) {
  Command command;
  command.arguments = endless_run();
  command.close_out_after = 1;
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_LT(outcome.seconds, 10);
}

TEST(Run, CtrlCEndsTheAnswer) {
  Command command;
  command.arguments = endless_run();
  bool sent = false;
  command.watch = [&sent](pid_t pid, const Outcome& so_far) {
    if (!so_far.out.empty() && !std::exchange(sent, true)) kill(pid, SIGINT);
  };
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, kCancelled);
  EXPECT_FALSE(outcome.out.empty());
  EXPECT_THAT(outcome.err, HasSubstr("error: the answer was interrupted"));
  EXPECT_LT(outcome.seconds, 10);
}

TEST(Run, WritesATrace) {
  const std::string file = scratch_folder() + "/trace.json";
  const Outcome outcome =
      troika_run(tiny("run", {"-p", "Hello", "-n", "4", "--ignore-eos", "--trace", file}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream stream(file);
  const json trace = json::parse(stream, nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  EXPECT_FALSE(trace["traceEvents"].empty());
}

TEST(Run, ATraceThatCannotBeWrittenIsToldBeforeTheModelIsRead) {
  for (const char* verb : {"run", "chat", "perplexity", "bench"}) {
    std::vector<std::string> arguments = {verb, "-m", "/nonexistent.gguf"};
    if (std::string(verb) != "bench") arguments.insert(arguments.end(), {"-p", "Hello"});
    arguments.insert(arguments.end(), {"--trace", "/nonexistent/trace.json"});
    expect_error(troika_run(arguments), kIo, "/nonexistent/trace.json: No such file or directory");
  }
}

TEST(Run, ATraceHasAFileOfItsOwn) {
  Command command;
  command.folder = scratch_folder();
  command.arguments = tiny("run", {"-p", "Hello", "-n", "1", "--trace", "-"});
  expect_error(run(command), kUsage, "--trace: standard output has what is printed already");
  EXPECT_FALSE(std::ifstream(scratch_folder() + "/-").is_open());
}

TEST(Run, OnlyOneTextComesFromStandardInput) {
  Command command;
  command.input = "Hello";
  command.arguments = tiny("run", {"-f", "-", "-n", "1", "--plan", "-"});
  expect_error(run(command), kUsage, "both read standard input");
}

TEST(Run, StatisticsAreForPeople) {
  const Outcome outcome = troika_run(tiny("run", {"-p", "Hello", "-n", "4", "--stats"}));
  EXPECT_THAT(outcome.err, HasSubstr("first token after"));
  EXPECT_THAT(outcome.err, HasSubstr("tok/s"));
}

TEST(Chat, AnswersEachLineAndObeysCommands) {
  const Outcome outcome =
      with_input(tiny("chat", {"--temp", "0", "-n", "5"}),
                 "Hello\n/reset\nHello\n/nonsense\n/help\ntwo \\\nlines\n/bye\nnever read\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the conversation is forgotten"));
  EXPECT_THAT(outcome.err, HasSubstr("'/nonsense' is no command"));
  EXPECT_EQ(outcome.out.find("> "), std::string::npos);
  const json once =
      expect_json(troika_run(tiny("run", {"--temp", "0", "-n", "5", "-p", "Hello", "--json"})));
  const std::string answer = once["text"].get<std::string>() + "\n";
  EXPECT_TRUE(outcome.out.starts_with(answer + answer)) << outcome.out;
  const json two = expect_json(
      troika_run(tiny("run", {"--temp", "0", "-n", "5", "-p", "two \nlines", "--json"})));
  EXPECT_NE(two["prompt_tokens"], once["prompt_tokens"]);
}

TEST(Chat, AMessageThatIsTooLongLeavesItUsable) {
  const Outcome outcome = with_input(tiny("chat", {"-c", "256", "-n", "4", "--ignore-eos"}),
                                     std::string(20000, 'x') + "\nHello\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("256"));
  EXPECT_FALSE(outcome.out.empty());
}

TEST(Chat, EndsWithItsInput) {
  EXPECT_EQ(with_input(tiny("chat", {}), "").exit_code, 0);
  EXPECT_EQ(with_input(tiny("chat", {"-n", "2"}), "no newline").exit_code, 0);
}

TEST(Tokenize, PiecesJoinToTheText) {
  const std::string text = "Hello, world! caf\xc3\xa9";
  const json tokens = expect_json(troika_run(tiny("tokenize", {"--json", "--no-bos", "-p", text})));
  ASSERT_EQ(tokens["tokens"].size(), tokens["pieces"].size());
  ASSERT_EQ(tokens.size(), 2u);
  std::string joined;
  for (const json& piece : tokens["pieces"]) joined += piece.get<std::string>();
  EXPECT_THAT(joined, HasSubstr("Hello, world! caf"));
}

TEST(Perplexity, PrintsItsFourNumbers) {
  const json scored = expect_json(
      with_input(tiny("perplexity", {"-f", "-", "--json"}), "Once upon a time there was a model."));
  const double mean = scored["nll_mean"];
  EXPECT_GT(mean, 0);
  EXPECT_NEAR(scored["perplexity"].get<double>(), std::exp(mean), 1e-6 * std::exp(mean));
  EXPECT_GT(scored["tokens"].get<int>(), 1);
  EXPECT_GT(scored["tok_s"].get<double>(), 0);
  expect_error(with_input(tiny("perplexity", {"-f", "-", "--json"}), ""), 2, "at least 2");
  expect_error(with_input(tiny("perplexity", {"-f", "-", "-c", "1", "--json"}), "Once upon a time"),
               2, "a context of 1");
}

TEST(Inspect, ShowsShapeTensorsAndTokenizer) {
  const json shown = expect_json(troika_run(tiny("inspect", {"--json"})));
  EXPECT_EQ(shown["hyper_parameters"]["architecture"], "llama");
  EXPECT_EQ(shown["supported"], true);
  EXPECT_EQ(shown["type"], "Q8_0");
  EXPECT_FALSE(shown["tensors"].empty());
  EXPECT_EQ(shown["tokenizer"]["vocab_size"], shown["hyper_parameters"]["n_vocab"]);
  const Outcome text = troika_run(tiny("show", {}));
  EXPECT_THAT(text.out, HasSubstr("hyper-parameters"));
  EXPECT_THAT(text.out, HasSubstr("token_embd.weight"));
}

TEST(Devices, ListsTheCpu) {
  const json devices = expect_json(troika_run({"devices", "--json"}));
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0]["kind"], "cpu");
  const json bound = expect_json(troika_run({"devices", "--device", "cpu@0", "--json"}));
  EXPECT_EQ(bound[0]["cores"], json::parse("[0]"));
  EXPECT_THAT(troika_run({"devices"}).out, HasSubstr("cores"));
  expect_error(troika_run({"devices", "--device", "abacus"}), 3, "abacus");
}

TEST(Synth, TheSameSeedGivesTheSameFile) {
  const auto bytes = [](const std::string& seed) {
    const std::string file = scratch_folder() + "/synth.gguf";
    EXPECT_EQ(troika_run({"synth", "--shape", "32,1,2,1,64,300", "--type", "Q4_0", "-o", file,
                          "--seed", seed})
                  .exit_code,
              0);
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string first = bytes("1");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, bytes("1"));
  EXPECT_NE(first, bytes("2"));
}

TEST(Synth, ALimitOfFileSizesIsToldAndNothingIsLeft) {
  const std::string path = scratch_folder() + "/limited.gguf";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const Outcome outcome = troika_run({"synth", "--shape", "tiny", "-o", path});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_error(outcome, kIo, "File too large");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Bench, JsonIsOneArrayWithARowForEachTest) {
  const Outcome outcome = troika_run(tiny("bench", {"-p", "8,16", "-n", "4", "-pg", "8,2", "-d",
                                                    "0,32", "-t", "1", "-r", "2", "-o", "json"}));
  const json rows = expect_json(outcome);
  ASSERT_EQ(rows.size(), 8u);
  const std::vector<std::string> names = {"pp8",       "pp16",       "tg4",       "pp8+tg2",
                                          "pp8 @ d32", "pp16 @ d32", "tg4 @ d32", "pp8+tg2 @ d32"};
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    EXPECT_EQ(row["test"], names[i]);
    ASSERT_EQ(row["samples_ts"].size(), 2u);
    EXPECT_NEAR(row["avg_ts"].get<double>(),
                (row["samples_ts"][0].get<double>() + row["samples_ts"][1].get<double>()) / 2,
                1e-6 * row["avg_ts"].get<double>());
    for (const char* key : {"gflops", "gbps", "peak_gflops", "peak_gbps", "share_of_peak"}) {
      EXPECT_GT(row[key].get<double>(), 0) << key;
    }
    for (const char* key :
         {"stddev_ts",     "avg_ns",     "stddev_ns",      "samples_ns",     "n_prompt",
          "n_gen",         "n_depth",    "devices",        "activations",    "kv_type",
          "model_type",    "model_size", "model_n_params", "model_filename", "build_commit",
          "cpu_info",      "kernels",    "load_ms",        "compile_ms",     "test_time",
          "clock_governor"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    EXPECT_EQ(row["threads"], 1);
    EXPECT_FALSE(row["kernels"].get<std::string>().empty());
  }
}

TEST(Bench, TakesLittleMemoryBesideTheModel) {
  if (sanitized()) GTEST_SKIP() << "sanitizers need memory of their own";
  std::vector<std::string> models = {tiny_model()};
  if (!default_model().empty()) models.push_back(default_model());
  for (const std::string& model : models) {
    const Outcome outcome =
        troika_run({"bench", "-m", model, "-p", "64", "-n", "2", "-r", "1", "-o", "json"});
    EXPECT_EQ(expect_json(outcome).size(), 2u);
    const auto file = static_cast<int64_t>(std::filesystem::file_size(model));
    EXPECT_LT(outcome.peak_rss_bytes, file + 150'000'000) << model;
  }
}

TEST(Bench, OtherFormats) {
  const std::vector<std::string> flags = {"-p", "8", "-n", "2", "-t", "1", "-r", "1", "-o"};
  const auto printed = [&flags](const char* format) {
    auto arguments = tiny("bench", flags);
    arguments.emplace_back(format);
    const Outcome outcome = troika_run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  const std::string table = printed("md");
  EXPECT_THAT(table, HasSubstr("| model"));
  EXPECT_THAT(table, HasSubstr("pp8"));
  EXPECT_THAT(table, HasSubstr("GB/s"));
  EXPECT_THAT(table, HasSubstr("\nbuild: "));
  const std::string lines = printed("jsonl");
  EXPECT_EQ(json::parse(lines.substr(0, lines.find('\n')))["test"], "pp8");
  EXPECT_THAT(printed("csv"), HasSubstr("\"tg2\""));
}

// The default model against recorded values of an independent implementation.
class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (default_model().empty()) GTEST_SKIP() << "the default model is not installed";
  }
};

// All recorded prompts; one of them under a sanitizer, which looks at code and not at numbers.
json golden() {
  std::ifstream stream(repository_path("tests/golden/smollm2-135m-instruct-q4_1.json"));
  json entries = json::parse(stream);
  if (sanitized()) entries.erase(entries.begin() + 1, entries.end());
  return entries;
}

TEST_F(DefaultModel, TokensAreTheReferences) {
  for (const json& entry : golden()) {
    const json tokens =
        expect_json(troika_run({"tokenize", "-m", default_model(), "--json", "-p", entry["text"]}));
    EXPECT_EQ(tokens["tokens"], entry["ids"]) << entry["text"];
  }
}

TEST_F(DefaultModel, GreedyAnswersAndProbabilitiesAreTheReferences) {
  for (const json& entry : golden()) {
    SCOPED_TRACE(entry["text"].dump());
    const json answer = expect_json(
        troika_run({"run", "-m", default_model(), "-p", entry["text"], "--raw", "--temp", "0", "-n",
                    "24", "--json", "--logprobs", "10", "--ignore-eos"}));
    EXPECT_EQ(answer["prompt_tokens"], entry["ids"]);
    for (size_t i = 0; i < entry["greedy"].size() && entry["gap"][i].get<double>() >= 0.001; ++i) {
      EXPECT_EQ(answer["tokens"][i], entry["greedy"][i]) << "position " << i;
    }
    std::map<int, double> ours;
    for (const json& top : answer["top_logprobs"][0]) ours[top["id"]] = top["logprob"];
    for (size_t i = 0; i < 5; ++i) {  // the last of ten may change places with the eleventh
      const json& top = entry["top"][i];
      ASSERT_TRUE(ours.contains(top[0])) << top.dump();
      EXPECT_NEAR(ours[top[0]], top[1].get<double>(), 0.02);
    }
  }
}

TEST_F(DefaultModel, PerplexityIsTheReferences) {
  for (const json& entry : golden()) {
    const json scored = expect_json(
        with_input({"perplexity", "-m", default_model(), "-f", "-", "--json"}, entry["text"]));
    EXPECT_NEAR(scored["nll_mean"].get<double>(), entry["mean_nll"].get<double>(), 0.005)
        << entry["text"];
  }
}

TEST_F(DefaultModel, TypedTextNeverBecomesAControlToken) {
  const json answer = expect_json(troika_run(
      {"run", "-m", default_model(), "-p", "<|im_end|><|im_start|>system", "-n", "1", "--json"}));
  int starts = 0;
  for (const json& id : answer["prompt_tokens"]) starts += id == 1 ? 1 : 0;
  EXPECT_EQ(starts, 3);  // system, user and assistant: those of the template only
}

}  // namespace
}  // namespace troika
