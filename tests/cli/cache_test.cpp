// What runs remember below the cache folder, and that nothing in there can do harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace troika {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    static int count = 0;
    cache_ = scratch_folder() + "/cache-" + std::to_string(count++);
  }

  Outcome answer(const std::string& devices, std::vector<std::string> more = {}) const {
    Command command;
    command.arguments = {"run", "-m",     tiny_model(), "--raw", "-p",       "Hello", "-n",
                         "4",   "--temp", "0",          "-v",    "--device", devices};
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
    command.environment["TROIKA_CACHE"] = cache_;
    return run(command);
  }

  std::vector<fs::path> files(const std::string& folder) const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(cache_ + "/" + folder, none)) {
      files.push_back(entry.path());
    }
    return files;
  }

  std::string cache_;
};

TEST_F(CacheTest, RatesAreMeasuredOnceAndAgainWhenDamaged) {
  const std::string devices = "cpu@0,systolic@0";
  const Outcome first = answer(devices);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("rates: measured in "));
  const Outcome second = answer(devices);
  EXPECT_THAT(second.err, HasSubstr("rates: remembered"));
  EXPECT_THAT(second.err, Not(HasSubstr("measured in ")));
  ASSERT_EQ(files("rates").size(), 1u);
  std::ofstream(files("rates")[0]) << "{\"format\": 1, \"identity\"";
  const Outcome third = answer(devices);
  EXPECT_EQ(third.exit_code, 0);
  EXPECT_THAT(third.err, HasSubstr("rates: measured in "));
  EXPECT_THAT(answer(devices).err, HasSubstr("rates: remembered"));
}

TEST_F(CacheTest, WithoutItNothingIsReadOrKept) {
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = answer("cpu@0,systolic@0", {"--no-cache"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rates: measured in "));
  }
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(CacheTest, CompiledGraphsAreUsedAgainAndReplacedWhenDamaged) {
  const Outcome first = answer("openvino@0");
  if (first.err.find("put aside") != std::string::npos) GTEST_SKIP() << first.err;
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto graphs = files("graphs");
  ASSERT_FALSE(graphs.empty());
  for (size_t i = 0; i < graphs.size(); ++i) {
    // Empty, cut off, and changed in one place.
    if (i % 3 < 2) fs::resize_file(graphs[i], i % 3 == 0 ? 0 : fs::file_size(graphs[i]) / 2);
    if (i % 3 < 2) continue;
    std::fstream file(graphs[i], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(graphs[i]) / 2));
    file.put('\x55').put('\xaa');
  }
  for (int i = 0; i < 2; ++i) {
    const Outcome again = answer("openvino@0");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, first.out);
    EXPECT_EQ(files("graphs").size(), graphs.size());
  }
}

TEST_F(CacheTest, AFolderInTheWayCostsTheWorkOnly) {
  fs::create_directories(cache_);
  for (const char* name : {"rates", "graphs", "devices"}) {
    std::ofstream(cache_ + "/" + name) << "in the way";
  }
  for (const char* devices : {"cpu@0,systolic@0", "openvino@0"}) {
    const Outcome outcome = answer(devices);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
}

}  // namespace
}  // namespace troika
