#include "cli/text.h"

#include <gtest/gtest.h>

namespace troika::cli {
namespace {

TEST(Text, ControlCharactersAreMadeVisible) {
  EXPECT_EQ(printable("a\tb\n\x1b[2J\x7f"), "a\\tb\\n\\x1b[2J\\x7f");
  EXPECT_EQ(printable("caf\xc3\xa9 \xe2\x82\xac"), "caf\xc3\xa9 \xe2\x82\xac");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\u009b2J");  // the one-byte CSI of 8-bit terminals
}

TEST(Text, BrokenUtf8IsRepaired) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(valid_utf8("\xf0\x9f\x98"), "\xef\xbf\xbd");
}

TEST(Text, ShorteningKeepsCharactersWhole) {
  EXPECT_EQ(shortened("short", 10), "short");
  EXPECT_EQ(shortened("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5),
            "\xc3\xa9\xc3\xa9...");
}

TEST(Text, Escapes) {
  EXPECT_EQ(unescape("a\\nb\\t\\\\n\\x41\\\""), "a\nb\t\\nA\"");
  EXPECT_EQ(unescape("\\q \\x4 \\"), "\\q \\x4 \\");
}

TEST(Text, NearestName) {
  const std::vector<std::string> names = {"run", "chat", "bench", "inspect"};
  EXPECT_EQ(nearest("rum", names), "run");
  EXPECT_EQ(nearest("inspcet", names), "inspect");
  EXPECT_EQ(nearest("banana", names), "");
}

TEST(Text, FilesThatAreNoFilesAreRefused) {
  EXPECT_EQ(read_text("/nonexistent/prompt.txt").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_text("/").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_text("/dev/zero").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::cli
