#include "cli/cache_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace troika::cli {
namespace {

std::string folder_for(const std::map<std::string, std::string>& variables) {
  return cache_folder([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(CacheFolder, IsTheFirstThatIsSet) {
  EXPECT_EQ(folder_for({{"TROIKA_CACHE", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}), "/a");
  EXPECT_EQ(folder_for({{"TROIKA_CACHE", ""}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}),
            "/b/troika");
  EXPECT_EQ(folder_for({{"XDG_CACHE_HOME", "b"}, {"HOME", "/c"}}), "/c/.cache/troika");
  EXPECT_EQ(folder_for({{"HOME", "/c"}}), "/c/.cache/troika");
  EXPECT_EQ(folder_for({{"HOME", ""}}), "");
  EXPECT_EQ(folder_for({}), "");
}

TEST(CacheFolder, ARelativeNameIsMeantFromHere) {
  EXPECT_EQ(folder_for({{"TROIKA_CACHE", "cache"}}),
            (std::filesystem::current_path() / "cache").string());
}

TEST(CacheFolder, TellsWhetherItCanBeWritten) {
  std::string base = (std::filesystem::temp_directory_path() / "troika-cache-XXXXXX").string();
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  const std::string folder = base + "/a/b";
  EXPECT_TRUE(check_folder_writable(folder).has_value());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  for (const std::string& bad : {std::string("/proc/none"), std::string("/dev/null/x")}) {
    const Status status = check_folder_writable(bad);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
    EXPECT_NE(status.error().message.find(bad), std::string::npos);
  }
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace troika::cli
