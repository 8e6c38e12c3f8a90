#include "troika/base/cache_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace troika {
namespace {

namespace fs = std::filesystem;

class CacheFileTest : public ::testing::Test {
 protected:
  CacheFileTest() {
    if (mkdtemp(folder_.data()) == nullptr) folder_.clear();
  }
  ~CacheFileTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  std::string folder_ = (fs::temp_directory_path() / "troika-cache-XXXXXX").string();
};

TEST_F(CacheFileTest, GivesBackWhatWasWrittenUpToTheBound) {
  const std::string below = folder_ + "/a/b";
  ASSERT_TRUE(write_cache_file(below, "x", "12345").has_value());
  EXPECT_EQ(read_cache_file(below + "/x", 5), "12345");
  EXPECT_FALSE(read_cache_file(below + "/x", 4).has_value());
  ASSERT_TRUE(write_cache_file(below, "x", "").has_value());
  EXPECT_EQ(read_cache_file(below + "/x", 5), "");
  EXPECT_FALSE(read_cache_file(below + "/y", 5).has_value());
  EXPECT_FALSE(read_cache_file(below, 5).has_value());
}

TEST_F(CacheFileTest, NamesAreDistinctAndHoldNoOddCharacters) {
  std::set<std::string> seen;
  const std::string long_key(300, 'a');
  for (const std::string& key : {std::string(), std::string("a/b"), std::string("a.b"),
                                 std::string("../../x"), long_key, long_key + "b"}) {
    const std::string name = cache_file_name(key);
    EXPECT_EQ(name.find_first_of("/ \n"), std::string::npos);
    EXPECT_LT(name.size(), 100u);
    EXPECT_TRUE(seen.insert(name).second) << key;
  }
}

TEST_F(CacheFileTest, AFullFolderLosesItsOldestFiles) {
  const auto write = [&](const std::string& name, size_t bytes, int age) {
    ASSERT_TRUE(write_cache_file(folder_, name, std::string(bytes, 'x')).has_value());
    fs::last_write_time(folder_ + "/" + name,
                        fs::file_time_type::clock::now() - std::chrono::hours(age));
  };
  write("old", 10, 3);
  write("middle", 100, 2);
  write("new", 50, 1);
  fs::create_directory(folder_ + "/folder");
  fs::create_symlink("/etc/passwd", folder_ + "/link");
  keep_newest(folder_, 3, 1000);
  EXPECT_EQ(names(), (std::set<std::string>{"old", "middle", "new", "folder", "link"}));
  keep_newest(folder_, 2, 1000);
  EXPECT_EQ(names(), (std::set<std::string>{"middle", "new", "folder", "link"}));
  keep_newest(folder_, 10, 149);
  EXPECT_EQ(names(), (std::set<std::string>{"new", "folder", "link"}));
  keep_newest(folder_ + "/none", 1, 1);
}

}  // namespace
}  // namespace troika
