// What only a terminal shows: the prompt of a chat, Ctrl-C, Ctrl-D, statistics.
#include "tests/cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace troika {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kCancelled = 11;
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

std::vector<std::string> endless(const std::string& verb) {
  return {verb, "-m", long_context_model(), "--ignore-eos", "-n", "-1", "-c", "60000"};
}

TEST(Terminal, CtrlCEndsAnAnswerAndTheChatGoesOn) {
  Terminal terminal(endless("chat"));
  ASSERT_TRUE(terminal.wait_for("/help lists the commands"));
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("Hello\n");
  ASSERT_TRUE(terminal.wait_for("Hello\r\n"));
  ASSERT_TRUE(terminal.wait_for_output(3));  // the answer has begun
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("\n> "));
  terminal.type("/help\n");
  ASSERT_TRUE(terminal.wait_for("/reset"));
  terminal.type("/bye\n");
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST(Terminal, TwoCtrlCAtThePromptEndTheChat) {
  Terminal terminal(endless("chat"));
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type("half a message");
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("Ctrl-C again"));
  terminal.type(kCtrlC);
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST(Terminal, CtrlDEndsTheChat) {
  Terminal terminal(endless("chat"));
  ASSERT_TRUE(terminal.wait_for("> "));
  terminal.type(kCtrlD);
  EXPECT_EQ(terminal.wait_for_end(), 0);
}

TEST(Terminal, RunPrintsTimesAfterTheAnswer) {
  Terminal terminal({"run", "-m", tiny_model(), "-p", "Hello", "-n", "5", "--ignore-eos"});
  EXPECT_TRUE(terminal.wait_for("first token after"));
  EXPECT_EQ(terminal.wait_for_end(), 0);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("error")));
}

TEST(Terminal, CtrlCEndsRun) {
  std::vector<std::string> arguments = endless("run");
  arguments.insert(arguments.end(), {"-p", "Hello"});
  Terminal terminal(arguments);
  ASSERT_TRUE(terminal.wait_for_output(3));
  terminal.type(kCtrlC);
  EXPECT_EQ(terminal.wait_for_end(), kCancelled);
  EXPECT_THAT(terminal.screen(), HasSubstr("error: the answer was interrupted after"));
}

TEST(Terminal, RunWithoutAPromptSaysHowToGiveOne) {
  Terminal terminal({"run", "-m", tiny_model()});
  EXPECT_EQ(terminal.wait_for_end(), 2);
  EXPECT_THAT(terminal.screen(), HasSubstr("error: no text given; use -p TEXT"));
}

}  // namespace
}  // namespace troika
