#include "troika/base/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
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
  for (const json& one : events) {
    if (one["ph"] == "X") tasks.push_back(one);
    if (one["name"] == "thread_name") names.push_back(one);
  }
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

// What the viewers of this format rely on, for every event of a file.
void expect_chrome_schema(const json& root) {
  ASSERT_TRUE(root.is_object());
  ASSERT_TRUE(root["traceEvents"].is_array());
  std::map<int64_t, std::string> threads;
  std::map<int64_t, std::vector<std::pair<double, double>>> slices;
  for (const json& one : root["traceEvents"]) {
    ASSERT_TRUE(one["name"].is_string()) << one;
    ASSERT_EQ(one["pid"], 1) << one;
    ASSERT_TRUE(one["args"].is_object()) << one;
    if (one["ph"] == "M") {
      if (one["name"] == "thread_name") threads[one["tid"]] = one["args"]["name"];
      continue;
    }
    ASSERT_EQ(one["ph"], "X") << one;
    ASSERT_TRUE(threads.count(one["tid"])) << one;
    for (const char* key : {"ts", "dur"}) ASSERT_GE(one[key].get<double>(), 0) << one;
    for (const char* key : {"pass", "layer", "chunk", "rows", "bytes", "macs"}) {
      ASSERT_TRUE(one["args"][key].is_number_integer()) << key << one;
    }
    for (const char* key : {"queued_us", "wait_us", "delay_us", "predicted_us"}) {
      ASSERT_GE(one["args"][key].get<double>(), 0) << key << one;
    }
    slices[one["tid"]].emplace_back(one["ts"], one["ts"].get<double>() + one["dur"].get<double>());
  }
  // Slices of one thread may not overlap, or the viewers drop some of them.
  for (auto& [tid, times] : slices) {
    std::sort(times.begin(), times.end());
    for (size_t i = 1; i < times.size(); ++i) {
      EXPECT_LE(times[i - 1].second, times[i].first) << tid;
    }
  }
}

TEST(Trace, FollowsTheSchemaOfChromeEvents) {
  Trace trace;
  trace.title = "a <model>";
  trace.devices = {{"npu", "an idle one"}, {"a", "cores 0-1"}};
  trace.events = {event("G1", "b", 5, 30, 60),   event("G2", "a", 0, 10, 20),
                  event("A", "a", 0, 15, 40),    event("G1", "a", 0, 18, 19),
                  event("head", "a", 0, 40, 41), event("backwards", "b", 90, 80, 70)};
  const json root = json::parse(to_chrome_json(trace));
  expect_chrome_schema(root);
  std::vector<std::string> names;
  for (const json& one : root["traceEvents"]) {
    if (one["name"] == "thread_name") names.push_back(one["args"]["name"]);
  }
  // Three tasks of `a` ran at once.
  EXPECT_EQ(names, (std::vector<std::string>{"npu", "a", "b", "a", "a"}));
  EXPECT_EQ(root["traceEvents"][0]["name"], "process_name");
  EXPECT_EQ(root["traceEvents"][0]["args"]["name"], "a <model>");
}

TEST(Trace, LanesKeepOverlappingEventsApart) {
  Trace trace;
  trace.events = {event("", "a", 0, 10, 20),  event("", "a", 0, 0, 100),
                  event("", "a", 0, 20, 30),  event("", "b", 0, 10, 20),
                  event("", "a", 0, 25, 26),  event("", "a", 0, 100, 100),
                  event("", "a", 0, 100, 101)};
  EXPECT_EQ(overlap_lanes(trace), (std::vector<int32_t>{1, 0, 1, 0, 2, 0, 0}));
  trace.events = {event("", "a", 0, 0, 10), event("", "a", 0, 9, 20), event("", "a", 0, 18, 30)};
  EXPECT_EQ(overlap_lanes(trace, microseconds(1)), (std::vector<int32_t>{0, 0, 1}));
}

TEST(Trace, TimesCountFromTheFirstOfAll) {
  Trace trace;
  EXPECT_EQ(trace_origin(trace), TimePoint{});
  trace.events = {event("", "a", 7, 5, 9), event("", "a", 6, 8, 9)};
  EXPECT_EQ(trace_origin(trace), microseconds(5));
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
