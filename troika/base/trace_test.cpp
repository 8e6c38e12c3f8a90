#include "troika/base/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace troika {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::microseconds;

TraceEvent event(const std::string& name, const std::string& device, int queued, int start,
                 int end) {
  TraceEvent event;
  event.name = name;
  event.device = device;
  event.pass = 2;
  event.layer = 3;
  event.rows = 4;
  event.bytes = int64_t{5} << 40;
  event.macs = 6;
  event.queued = microseconds(queued);
  event.start = microseconds(start);
  event.end = microseconds(end);
  return event;
}

class TraceFile : public ::testing::Test {
 protected:
  TraceFile() : folder_(fs::temp_directory_path() / fmt::format("trace_test.{}", getpid())) {
    fs::create_directories(folder_);
    trace_.events = {event("G1", "cpu", 10, 20, 30)};
  }
  ~TraceFile() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  fs::path folder_;
  Trace trace_;
};

TEST(Trace, IsCompleteAsChromeEvents) {
  Trace trace;
  trace.simulated = true;
  trace.events = {event("G1 layer 3", "a", 1000, 1005, 1010),
                  event("A \"x\"\n", "b", 1002, 1010, 1020), event("G2", "a", 1003, 1020, 1021)};
  const json root = json::parse(to_chrome_json(trace));
  EXPECT_EQ(root["otherData"]["simulated"], true);
  const json& events = root["traceEvents"];
  std::vector<json> tasks;
  std::vector<json> names;
  for (const json& one : events) (one["ph"] == "X" ? tasks : names).push_back(one);
  ASSERT_EQ(tasks.size(), 3u);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0]["args"]["name"], "a");
  EXPECT_EQ(names[1]["args"]["name"], "b");
  EXPECT_EQ(tasks[0]["tid"], names[0]["tid"]);
  EXPECT_EQ(tasks[1]["tid"], names[1]["tid"]);
  EXPECT_EQ(tasks[2]["tid"], names[0]["tid"]);
  EXPECT_EQ(tasks[1]["name"], "A \"x\"\n");
  EXPECT_EQ(tasks[0]["ts"], 5.0);  // from the first event's queueing on
  EXPECT_EQ(tasks[0]["dur"], 5.0);
  EXPECT_EQ(tasks[1]["ts"], 10.0);
  EXPECT_EQ(tasks[2]["args"]["queued_us"], 3.0);
  EXPECT_EQ(tasks[2]["args"]["pass"], 2);
  EXPECT_EQ(tasks[2]["args"]["layer"], 3);
  EXPECT_EQ(tasks[2]["args"]["rows"], 4);
  EXPECT_EQ(tasks[2]["args"]["bytes"], int64_t{5} << 40);
  EXPECT_EQ(tasks[2]["args"]["macs"], 6);
}

TEST(Trace, WithoutEventsIsValid) {
  const json root = json::parse(to_chrome_json({}));
  EXPECT_TRUE(root["traceEvents"].is_array());
  EXPECT_TRUE(root["traceEvents"].empty());
  EXPECT_EQ(root["otherData"]["simulated"], false);
}

TEST(Trace, SurvivesNamesThatAreNotUtf8) {
  Trace trace;
  trace.events = {event("\xff\xfe", "\x80", 0, 0, 0)};
  EXPECT_FALSE(json::parse(to_chrome_json(trace))["traceEvents"].empty());
}

TEST_F(TraceFile, ReplacesAFileAsAWhole) {
  const std::string target = path("trace.json");
  std::ofstream(target) << "old";
  std::ifstream old(target);  // still reads the old file, whatever is written
  ASSERT_TRUE(write_chrome_json(trace_, target).has_value());
  std::string word;
  old >> word;
  EXPECT_EQ(word, "old");
  EXPECT_EQ(contents(target), to_chrome_json(trace_) + "\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(TraceFile, WritesThroughALinkAndKeepsIt) {
  std::ofstream(path("real.json")) << "old";
  fs::create_symlink(path("real.json"), path("link.json"));
  ASSERT_TRUE(write_chrome_json(trace_, path("link.json")).has_value());
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(contents(path("real.json")), to_chrome_json(trace_) + "\n");
  EXPECT_EQ(files(), 2u);
}

TEST_F(TraceFile, WritesToADeviceWithoutReplacingIt) {
  ASSERT_TRUE(write_chrome_json(trace_, "/dev/null").has_value());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(fs::exists("/dev/null.part"));
}

TEST_F(TraceFile, WritesToAPipeWithoutReplacingIt) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = contents(pipe); });
  const Status written = write_chrome_json(trace_, pipe);
  reader.join();
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(read, to_chrome_json(trace_) + "\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(TraceFile, ErrorsNameThePathAndLeaveNothingBehind) {
  fs::create_directory(path("folder"));
  for (const std::string& bad :
       {path("absent/trace.json"), path("folder"), std::string("/dev/full")}) {
    const Status written = write_chrome_json(trace_, bad);
    ASSERT_FALSE(written.has_value()) << bad;
    EXPECT_EQ(written.error().code, ErrorCode::kIo);
    EXPECT_NE(written.error().message.find(bad), std::string::npos) << written.error().message;
  }
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace troika
