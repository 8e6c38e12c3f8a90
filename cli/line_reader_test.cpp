#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

namespace troika::cli {
namespace {

using Kind = LineReader::Kind;

// The reading end of a pipe that holds `text`, its writing end closed.
int pipe_of(std::string_view text) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  return ends[0];
}

TEST(LineReader, LinesEndsAndTheLastWithoutOne) {
  const int fd = pipe_of("one\r\n\ntwo \xff\nthree");
  LineReader reader(fd);
  for (const char* expected : {"one", "", "two \xff", "three"}) {
    const auto line = reader.next();
    ASSERT_TRUE(line.has_value());
    EXPECT_EQ(line->kind, Kind::kLine);
    EXPECT_EQ(line->text, expected);
  }
  EXPECT_EQ(reader.next()->kind, Kind::kEnd);
  EXPECT_EQ(reader.next()->kind, Kind::kEnd);
  close(fd);
}

TEST(LineReader, TellsAnUnreadableDescriptor) {
  LineReader reader(-1);
  EXPECT_EQ(reader.next().error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace troika::cli
