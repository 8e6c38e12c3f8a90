#include "troika/device/openvino/module/graph_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace troika::device::openvino {
namespace {

namespace fs = std::filesystem;

class GraphStoreTest : public ::testing::Test {
 protected:
  GraphStoreTest()
      : folder_(fs::temp_directory_path() / fmt::format("graph-store-{}", getpid())),
        store_((folder_ / "graphs").string()) {}
  ~GraphStoreTest() override { fs::remove_all(folder_); }

  fs::path only_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_ / "graphs")) {
      EXPECT_TRUE(found.empty()) << entry.path();
      found = entry.path();
    }
    return found;
  }

  fs::path folder_;
  GraphStore store_;
};

TEST_F(GraphStoreTest, FindsWhatItKept) {
  const std::string graph("a\0graph", 7);
  EXPECT_FALSE(store_.find("one").has_value());
  store_.keep("one", graph);
  store_.keep("two", "another");
  EXPECT_EQ(store_.find("one"), graph);
  EXPECT_EQ(store_.find("two"), "another");
  store_.keep("one", "newer");
  EXPECT_EQ(store_.find("one"), "newer");
  EXPECT_FALSE(store_.find("three").has_value());
}

TEST_F(GraphStoreTest, WithoutAFolderKeepsNothing) {
  const GraphStore none("");
  EXPECT_FALSE(none.enabled());
  none.keep("one", "graph");
  EXPECT_FALSE(none.find("one").has_value());
}

TEST_F(GraphStoreTest, AFolderThatCannotBeWrittenToIsNoError) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "no folder";
  const GraphStore store((folder_ / "file" / "graphs").string());
  store.keep("one", "graph");
  EXPECT_FALSE(store.find("one").has_value());
}

TEST_F(GraphStoreTest, ADamagedFileIsNotUsed) {
  const std::string graph(1000, 'g');
  store_.keep("identity", graph);
  const fs::path path = only_file();
  std::string whole(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(whole.data(), static_cast<std::streamsize>(whole.size()));
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (size_t length = 0; length < whole.size(); length += 7) {
    write(whole.substr(0, length));
    EXPECT_FALSE(store_.find("identity").has_value()) << "cut at " << length;
  }
  write(whole + "more");
  EXPECT_FALSE(store_.find("identity").has_value());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write(changed);
    EXPECT_FALSE(store_.find("identity").has_value()) << "changed at " << at;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string garbage(random() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    write(garbage);
    EXPECT_FALSE(store_.find("identity").has_value());
  }
  write(whole);
  EXPECT_EQ(store_.find("identity"), graph);
}

// A file that was stored for another graph and came here under this one's name.
TEST_F(GraphStoreTest, AForeignFileIsNotUsed) {
  store_.keep("mine", "my graph");
  const fs::path mine = only_file();
  fs::rename(mine, folder_ / "kept");
  store_.keep("theirs", "their graph");
  fs::rename(only_file(), mine);
  EXPECT_FALSE(store_.find("mine").has_value());
}

}  // namespace
}  // namespace troika::device::openvino
