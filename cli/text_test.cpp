#include "cli/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "troika/base/clock.h"

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

TEST(Text, ATooLongFileIsRefusedBeforeItIsRead) {
  const std::string path = ::testing::TempDir() + "/long.txt";
  std::ofstream(path) << "12345678";
  EXPECT_EQ(read_text(path, 8).value(), "12345678");
  EXPECT_EQ(read_text(path, 7).error().code, ErrorCode::kInvalidArgument);
  // Takes no room: only a reader would notice its size.
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  const auto begin = system_clock().now();
  EXPECT_EQ(read_text(path, kMaxTextBytes).error().code, ErrorCode::kInvalidArgument);
  EXPECT_LT(to_seconds(system_clock().now() - begin), 1);
  std::filesystem::remove(path);
}

TEST(Text, FilesThatAreNoFilesAreRefused) {
  EXPECT_EQ(read_text("/nonexistent/prompt.txt").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_text("/").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_text("/dev/zero").error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troika::cli
