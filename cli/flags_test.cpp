#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace troika::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* nothing(const char*) { return nullptr; }

// The flags of an imagined verb with one of each kind.
struct Example {
  int64_t threads = 0;
  double temperature = 0.8;
  std::string prompt = "unset";
  std::string type = "f32";
  std::vector<std::string> stop;
  bool json = false;
  Flags flags{"example"};

  Example() {
    flags.integer("-t,--threads", threads, {1, 64}, "Threads", "LLAMA_ARG_THREADS");
    flags.number("--temp", temperature, {0, 2}, "Temperature");
    flags.text("-p,--prompt", prompt, "TEXT", "Prompt");
    flags.choice("--cache-type-k", type, {"f32", "f16"}, "Type", "LLAMA_ARG_CACHE_TYPE_K");
    flags.texts("-r,--stop", stop, "TEXT", "Stop");
    flags.toggle("--json", json, "JSON", "LLAMA_ARG_JSON");
    flags.ignored("--n-gpu-layers", Flags::Arity::kOne, "no GPU");
    flags.ignored("--flash-attn", Flags::Arity::kOptional, "always");
  }
  Status parse(const std::vector<std::string>& arguments,
               const std::map<std::string, std::string>& environment = {}) {
    return flags.parse(arguments, [&](const char* name) -> const char* {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    });
  }
};

TEST(Flags, ReadsEachKind) {
  Example e;
  ASSERT_TRUE(
      e.parse({"-t", "4", "--temp=0.5", "-p", "hi", "--json", "-r", "a", "--stop", "[b,c]"}));
  EXPECT_EQ(e.threads, 4);
  EXPECT_EQ(e.temperature, 0.5);
  EXPECT_EQ(e.prompt, "hi");
  EXPECT_TRUE(e.json);
  EXPECT_THAT(e.stop, ElementsAre("a", "[b,c]"));
  EXPECT_TRUE(e.flags.given("--prompt"));
  EXPECT_FALSE(e.flags.given("--cache-type-k"));
}

TEST(Flags, ReadsTheOneArgumentThatIsNoFlag) {
  const auto parse = [](const std::vector<std::string>& arguments) {
    std::string file;
    bool json = false;
    Flags flags{"example"};
    flags.positional("FILE", file, "A file");
    flags.toggle("--json", json, "JSON");
    const Status status = flags.parse(arguments, nothing);
    EXPECT_THAT(flags.names(), ElementsAre("-h", "--help", "--json"));
    return status ? file : status.error().message;
  };
  EXPECT_EQ(parse({"a.json", "--json"}), "a.json");
  EXPECT_EQ(parse({"--json", "FILE"}), "FILE");
  EXPECT_EQ(parse({"-"}), "-");
  EXPECT_EQ(parse({}), "");
  EXPECT_THAT(parse({"a", "b"}), HasSubstr("argument 'b' is not known"));
  EXPECT_THAT(parse({"--jsn", "b"}), HasSubstr("did you mean --json?"));
}

TEST(Flags, LlamaCppShortNames) {
  Example e;
  ASSERT_TRUE(e.parse({"-ctk", "f16", "-ngl", "99", "-fa", "-t", "2"}));
  EXPECT_EQ(e.type, "f16");
  EXPECT_EQ(e.threads, 2);
  EXPECT_THAT(e.flags.notes(), ElementsAre("--n-gpu-layers has no effect: no GPU",
                                           "--flash-attn has no effect: always"));
  Example on;
  ASSERT_TRUE(on.parse({"-fa", "on", "-t", "3"}));
  EXPECT_EQ(on.threads, 3);
}

TEST(Flags, ValuesAreTakenAsTheyAre) {
  for (const char* value :
       {"-ctk", "--json", "--", "-1", "", "--help", "--prompt=x", "[1,2]", "%s"}) {
    Example e;
    ASSERT_TRUE(e.parse({"--prompt", value, "-t", "2"})) << value;
    EXPECT_EQ(e.prompt, value);
    EXPECT_FALSE(e.json);
    EXPECT_EQ(e.threads, 2);
  }
  Example empty;
  ASSERT_TRUE(empty.parse({"--prompt=", "-t", "2"}));
  EXPECT_EQ(empty.prompt, "");
}

TEST(Flags, TheLastOneCounts) {
  Example e;
  ASSERT_TRUE(e.parse({"-t", "2", "-t", "3"}));
  EXPECT_EQ(e.threads, 3);
}

TEST(Flags, ErrorsNameFlagAndValue) {
  Example e;
  EXPECT_EQ(e.parse({"-t", "0"}).error().message,
            "--threads: '0' is out of range; allowed: 1 to 64");
  EXPECT_EQ(Example().parse({"-t"}).error().message,
            "-t needs a value; see 'troika example --help'");
  EXPECT_EQ(Example().parse({"-ctk", "q4_0"}).error().message,
            "--cache-type-k: 'q4_0' is not known; allowed: f32, f16");
  EXPECT_EQ(Example().parse({"--thread", "1"}).error().message,
            "option '--thread' is not known to 'troika example': did you mean --threads?; see "
            "'troika example --help'");
  EXPECT_THAT(Example().parse({"hello"}).error().message, HasSubstr("a prompt goes after -p"));
  EXPECT_THAT(Example().parse({"-hf", "a/b"}).error().message, HasSubstr("'-hf' is not known"));
}

TEST(Flags, TheEnvironmentComesAfterTheCommandLine) {
  Example from_environment;
  ASSERT_TRUE(from_environment.parse({}, {{"LLAMA_ARG_THREADS", "5"}, {"LLAMA_ARG_JSON", "1"}}));
  EXPECT_EQ(from_environment.threads, 5);
  EXPECT_TRUE(from_environment.json);
  Example own_name;
  ASSERT_TRUE(own_name.parse({}, {{"LLAMA_ARG_THREADS", "5"}, {"TROIKA_THREADS", "6"}}));
  EXPECT_EQ(own_name.threads, 6);
  Example command_line;
  ASSERT_TRUE(command_line.parse({"-t", "7"}, {{"LLAMA_ARG_THREADS", "bad"}}));
  EXPECT_EQ(command_line.threads, 7);
  EXPECT_EQ(Example().parse({}, {{"LLAMA_ARG_THREADS", "many"}}).error().message,
            "LLAMA_ARG_THREADS: 'many' is not a whole number; allowed: 1 to 64");
}

TEST(Flags, HelpListsEveryName) {
  Example e;
  e.flags.set_examples("  troika example -t 1\n");
  ASSERT_TRUE(e.flags.parse({"--help"}, nothing));
  EXPECT_TRUE(e.flags.help_requested());
  const std::string help = e.flags.help();
  for (const char* part : {"--threads", "-ctk", "LLAMA_ARG_THREADS", "Examples:"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  EXPECT_THAT(e.flags.names(), Contains("-ngl"));
}

TEST(Flags, AFileIsNotReadAndWrittenNorWrittenTwice) {
  const std::string folder = ::testing::TempDir() + "/flags_outputs";
  std::filesystem::create_directory(folder);
  const std::string there = folder + "/there";
  std::ofstream(there) << "words";
  std::filesystem::remove(folder + "/link");
  std::filesystem::create_symlink(there, folder + "/link");
  const auto parse = [](const std::vector<std::string>& arguments) {
    std::string in;
    std::string model;
    std::string page;
    std::string list;
    Flags flags{"example"};
    flags.positional("FILE", in, "Read");
    flags.file("-m,--model", model, "Read", "LLAMA_ARG_MODEL");
    flags.output("--html", page, "Written");
    flags.output("--list", list, "Written");
    const Status status = flags.parse(arguments, nothing);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(parse({there, "--html", folder + "/new", "--list", folder + "/other"}), "");
  EXPECT_EQ(parse({"-", "--html", "-"}), "");
  EXPECT_EQ(parse({there, "--model", there, "--html", "/dev/null", "--list", "/dev/null"}), "");
  EXPECT_THAT(parse({there, "--html", there}),
              HasSubstr("--html and FILE name the same file, '" + there + "': it would be lost"));
  EXPECT_THAT(parse({there, "--html", folder + "/../flags_outputs/link"}), HasSubstr("be lost"));
  EXPECT_THAT(
      parse({"--list", there, "-m", folder + "/link"}),
      HasSubstr("--list and --model name the same file, '" + there + "': it would be lost"));
  EXPECT_THAT(
      parse({"--html", folder + "/new", "--list", folder + "/./new"}),
      HasSubstr("--list and --html name the same file, '" + folder + "/./new': both would"));
  EXPECT_THAT(parse({"--html", "-", "--list", "-"}),
              HasSubstr("--list and --html both write to standard output"));
  EXPECT_THAT(parse({"-", "-m", "-"}), HasSubstr("--model and FILE both read standard input"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troika::cli
