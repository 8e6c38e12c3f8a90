// `--memory`: the rows explain what the system counts for the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t resident(const json& memory, const std::string& owner) {
  for (const json& row : memory["rows"]) {
    if (row["owner"] == owner) return row["resident_bytes"];
  }
  ADD_FAILURE() << "no row " << owner << " in " << memory;
  return 0;
}

constexpr int kNotFound = 3;

// On a model of real size: of a tiny one, the program itself is the most.
void expect_explained(const std::vector<std::string>& devices) {
  if (sanitized()) GTEST_SKIP() << "a sanitizer's own memory has no row";
  if (default_model().empty()) GTEST_SKIP() << "the default model is not installed";
  std::string list;
  for (const std::string& device : devices) list += (list.empty() ? "" : ",") + device;
  const Outcome outcome =
      troika_run({"run", "-m", default_model(), "--device", list, "--no-guard", "--temp", "0", "-n",
                  "4", "-c", "2048", "-p", "Hello", "--json", "--memory"});
  if (outcome.exit_code == kNotFound) GTEST_SKIP() << outcome.err;  // the device is not here
  const json answer = expect_json(outcome);
  const json& memory = answer["memory"];
  if (memory.is_null()) GTEST_SKIP() << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("unexplained"));
  const auto rss = memory["rss_bytes"].get<int64_t>();
  EXPECT_LE(std::abs(memory["unexplained_bytes"].get<int64_t>()), rss / 10) << outcome.err;
  EXPECT_EQ(resident(memory, "weights"), answer["memory_bytes"]["weights"]);
  EXPECT_GT(resident(memory, "kv cache"), 0);
  // A few tokens of a context of 2048: most of the cache was never written.
  EXPECT_LT(resident(memory, "kv cache"), answer["memory_bytes"]["kv cache"].get<int64_t>() / 4);
  EXPECT_GT(resident(memory, "program and libraries"), 1 << 20);
  EXPECT_GT(resident(memory, "stacks"), 0);
  for (const std::string& device : devices) resident(memory, device);
}

TEST(Memory, IsExplainedWithTheCpu) { expect_explained({"cpu"}); }
TEST(Memory, IsExplainedWithSystolic) { expect_explained({"cpu@0", "systolic@1"}); }
TEST(Memory, IsExplainedWithOpenvino) { expect_explained({"cpu@0", "openvino@1"}); }

TEST(Memory, IsToldOnlyWhenAskedFor) {
  const std::vector<std::string> arguments = {"run", "-m", tiny_model(), "-p", "Hello", "-n", "2"};
  EXPECT_THAT(troika_run(arguments).err, Not(HasSubstr("unexplained")));
  std::vector<std::string> asking = arguments;
  asking.emplace_back("--memory");
  const Outcome told = troika_run(asking);
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.err, HasSubstr("kv cache"));
  EXPECT_THAT(told.out, Not(HasSubstr("kv cache")));
}

TEST(Memory, OfAChatAndABench) {
  Command chat;
  chat.arguments = {"chat", "-m", tiny_model(), "-n", "2", "--memory"};
  chat.input = "Hello\n";
  EXPECT_THAT(run(chat).err, HasSubstr("all (RSS)"));
  const Outcome bench = troika_run(
      {"bench", "-m", tiny_model(), "-p", "4", "-n", "0", "-r", "1", "--memory", "-o", "json"});
  EXPECT_THAT(bench.err, HasSubstr("all (RSS)"));
  expect_json(bench);
}

}  // namespace
}  // namespace troika
