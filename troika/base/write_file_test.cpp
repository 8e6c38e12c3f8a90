#include "troika/base/write_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace troika {
namespace {

namespace fs = std::filesystem;

class CheckWritable : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "check_writable_test";
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  auto files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

 private:
  fs::path folder_;
};

TEST_F(CheckWritable, ANewFileIsNotMade) {
  EXPECT_TRUE(check_writable("the trace", path("new.json")).has_value());
  EXPECT_EQ(files(), 0);
}

TEST_F(CheckWritable, WhatIsThereStays) {
  std::ofstream(path("old.json")) << "old";
  EXPECT_TRUE(check_writable("the trace", path("old.json")).has_value());
  EXPECT_TRUE(check_writable("the trace", "/dev/null").has_value());
  // Without a reader: nothing waits for one here.
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(check_writable("the trace", path("pipe")).has_value());
  fs::create_symlink(path("later.json"), path("link.json"));
  EXPECT_TRUE(check_writable("the trace", path("link.json")).has_value());
  std::string word;
  std::ifstream(path("old.json")) >> word;
  EXPECT_EQ(word, "old");
  EXPECT_EQ(files(), 3);
}

TEST_F(CheckWritable, RefusesByPathAndReason) {
  const auto refused = [this](const std::string& target) {
    const Status status = check_writable("the trace", target);
    if (status) return std::string("accepted");
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
    EXPECT_EQ(files(), 0);
    return status.error().message;
  };
  EXPECT_EQ(refused(path("absent/a.json")),
            "cannot write the trace to " + path("absent/a.json") + ": No such file or directory");
  EXPECT_NE(refused(path("")).find("Is a directory"), std::string::npos);
  EXPECT_NE(refused("/proc/trace.json").find("/proc/trace.json"), std::string::npos);
  EXPECT_NE(refused(path(std::string(300, 'x'))).find("File name too long"), std::string::npos);
}

TEST_F(CheckWritable, FilesBesideItStayAsTheyAre) {
  const std::string beside = path("run.json.part");
  std::ofstream(beside) << "mine";
  fs::create_symlink(beside, path("link.part"));
  for (const char* name : {"run.json", "link"}) {
    EXPECT_TRUE(check_writable("the trace", path(name)).has_value());
    EXPECT_TRUE(write_file("the trace", path(name), "text").has_value());
    std::string word;
    std::ifstream(path(name)) >> word;
    EXPECT_EQ(word, "text");
    std::ifstream(beside) >> word;
    EXPECT_EQ(word, "mine");
  }
  EXPECT_EQ(files(), 4);
}

TEST_F(CheckWritable, WhatCannotBeReplacedIsToldAndNothingIsLeft) {
  fs::create_directory(path("folder"));
  EXPECT_EQ(write_file("the trace", path("absent/a"), "text").error().code, ErrorCode::kIo);
  EXPECT_FALSE(write_file("the trace", path("folder"), "text").has_value());
  EXPECT_EQ(files(), 1);
}

TEST_F(CheckWritable, KnowsTheSameFileByOtherNames) {
  std::ofstream(path("one")) << "one";
  std::ofstream(path("other")) << "one";
  fs::create_symlink("one", path("link"));
  fs::create_hard_link(path("one"), path("hard"));
  for (const char* name : {"one", "link", "hard", "./one", "../check_writable_test/one"}) {
    EXPECT_TRUE(is_same_file(path("one"), path(name))) << name;
  }
  EXPECT_TRUE(is_same_file(path("new"), path("./new")));
  EXPECT_FALSE(is_same_file(path("one"), path("other")));
  EXPECT_FALSE(is_same_file(path("one"), path("new")));
  EXPECT_FALSE(is_same_file(path("new"), path("newer")));
  EXPECT_FALSE(is_same_file("/dev/null", "/dev/null"));
  EXPECT_FALSE(is_same_file(path(""), path("")));
}

TEST_F(CheckWritable, ALinkStaysAndSoDoWhatItLedToAndItsPermissionsUntilAllIsWritten) {
  std::ofstream(path("secret")) << "old";
  ASSERT_EQ(chmod(path("secret").c_str(), 0600), 0);
  fs::create_directory(path("links"));
  fs::create_symlink("../secret", path("links/a"));
  fs::create_symlink("a", path("links/b"));
  ASSERT_TRUE(check_writable("the trace", path("links/b")).has_value());
  ASSERT_TRUE(write_file("the trace", path("links/b"), "new").has_value());
  std::string word;
  std::ifstream(path("secret")) >> word;
  EXPECT_EQ(word, "new");
  EXPECT_EQ(fs::status(path("secret")).permissions(), fs::perms(0600));
  EXPECT_EQ(fs::read_symlink(path("links/b")), "a");
  EXPECT_EQ(files(), 2);
}

}  // namespace
}  // namespace troika
