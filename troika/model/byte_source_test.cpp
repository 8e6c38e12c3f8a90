#include "troika/model/byte_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "troika/model/gguf.h"

namespace troika::model {
namespace {

namespace fs = std::filesystem;

class FileSource : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("troika_byte_source_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const char* name, const std::string& text) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  fs::path folder_;
};

TEST_F(FileSource, ReadsThroughSymbolicLinks) {
  const std::string path = write("file", "0123456789");
  const std::string link = (folder_ / "link").string();
  fs::create_symlink(path, link);
  const auto source = open_file_source(link);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 10u);
  std::array<char, 3> out{};
  ASSERT_TRUE((*source)->read(4, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(std::string(out.data(), out.size()), "456");
}

TEST_F(FileSource, RefusesWhatIsNoRegularFileWithoutWaiting) {
  const std::string fifo = (folder_ / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, folder_.string(), std::string("/dev/zero")}) {
    const auto source = open_file_source(path);
    ASSERT_FALSE(source) << path;
    EXPECT_EQ(source.error().code, ErrorCode::kInvalidArgument) << source.error().message;
  }
  EXPECT_EQ(open_file_source((folder_ / "absent").string()).error().code, ErrorCode::kNotFound);
}

TEST_F(FileSource, ShrunkFileIsAnError) {
  const std::string path = write("file", std::string(1000, 'x'));
  const auto source = open_file_source(path);
  ASSERT_TRUE(source);
  ASSERT_EQ(::truncate(path.c_str(), 500), 0);
  std::array<std::byte, 100> out;
  EXPECT_TRUE((*source)->read(400, out));
  const auto status = (*source)->read(450, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

TEST_F(FileSource, AdvisesToJoinParts) {
  const auto first = read_gguf_file(write("m.gguf.part2of2", "weights"));
  ASSERT_FALSE(first);
  EXPECT_NE(first.error().message.find("join them"), std::string::npos) << first.error().message;
  const auto other = read_gguf_file(write("m.gguf", "weights"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message.find("join them"), std::string::npos) << other.error().message;
}

TEST(MemorySource, RefusesReadsPastTheEnd) {
  const std::array<std::byte, 8> bytes{};
  const auto source = memory_source(bytes);
  std::array<std::byte, 4> out;
  EXPECT_TRUE(source->read(4, out));
  EXPECT_FALSE(source->read(5, out));
  EXPECT_FALSE(source->read(~uint64_t{0}, out));
}

}  // namespace
}  // namespace troika::model
