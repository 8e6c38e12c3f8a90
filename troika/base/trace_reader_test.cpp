// Reading Chrome trace events: what was written comes back, and nothing else does harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "troika/base/trace.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Trace full_trace() {
  Trace trace;
  trace.simulated = true;
  trace.stretch = 2.5;
  trace.title = "SmolLM2 </script> \xe2\x98\x83";
  trace.description = "line one\nline \"two\"";
  trace.devices = {{"cpu@0", "core 0"}, {"npu", "idle"}};
  TraceEvent event;
  event.name = "G1 layer 3";
  event.stage = "G1";
  event.device = "cpu@0";
  event.pass = 7;
  event.layer = 3;
  event.chunk = 2;
  event.sequences = 4;
  event.row_begin = 128;
  event.rows = 64;
  event.bytes = int64_t{3} << 40;
  event.copy_bytes = 12345;
  event.macs = int64_t{1} << 59;
  event.queued = TimePoint(1'000'000'000'001);
  event.start = TimePoint(1'000'000'004'002);
  event.end = TimePoint(1'000'123'456'789);
  event.wait = Duration(1500);
  event.delay = Duration(7);
  event.predicted_us = 0.1;
  TraceEvent plain;
  plain.name = "head";
  plain.device = "systolic";
  plain.queued = event.queued;
  plain.start = event.end;
  plain.end = event.end + Duration(86'400'000'000'001);  // a day
  trace.events = {event, plain, event};
  return trace;
}

TEST(TraceReader, GivesBackWhatWasWritten) {
  const Trace trace = full_trace();
  const auto read = trace_from_chrome_json(to_chrome_json(trace));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->simulated, trace.simulated);
  EXPECT_EQ(read->stretch, trace.stretch);
  EXPECT_EQ(read->title, trace.title);
  EXPECT_EQ(read->description, trace.description);
  ASSERT_EQ(read->devices.size(), 3u);
  EXPECT_EQ(read->devices[0].name, "cpu@0");
  EXPECT_EQ(read->devices[0].description, "core 0");
  EXPECT_EQ(read->devices[1].name, "npu");
  EXPECT_EQ(read->devices[2].name, "systolic");
  ASSERT_EQ(read->events.size(), trace.events.size());
  const TimePoint origin = trace_origin(trace);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    SCOPED_TRACE(i);
    const TraceEvent& was = trace.events[i];
    const TraceEvent& is = read->events[i];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.stage, was.stage);
    EXPECT_EQ(is.device, was.device);
    EXPECT_EQ(is.pass, was.pass);
    EXPECT_EQ(is.layer, was.layer);
    EXPECT_EQ(is.chunk, was.chunk);
    EXPECT_EQ(is.sequences, was.sequences);
    EXPECT_EQ(is.row_begin, was.row_begin);
    EXPECT_EQ(is.rows, was.rows);
    EXPECT_EQ(is.bytes, was.bytes);
    EXPECT_EQ(is.copy_bytes, was.copy_bytes);
    EXPECT_EQ(is.macs, was.macs);
    EXPECT_EQ(is.queued, was.queued - origin);
    EXPECT_EQ(is.start, was.start - origin);
    EXPECT_EQ(is.end, was.end - origin);
    EXPECT_EQ(is.wait, was.wait);
    EXPECT_EQ(is.delay, was.delay);
    EXPECT_EQ(is.predicted_us, was.predicted_us);
  }
  EXPECT_EQ(to_chrome_json(*read), to_chrome_json(trace));
}

TEST(TraceReader, GivesBackAnEmptyTrace) {
  const auto read = trace_from_chrome_json(to_chrome_json({}));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->events.empty());
  EXPECT_EQ(to_chrome_json(*read), to_chrome_json({}));
}

// Numbers of a writer that are not sound must not make a file that cannot be read.
TEST(TraceReader, ReadsWhatWasWrittenFromUnsoundTimes) {
  Trace trace = full_trace();
  trace.stretch = NAN;
  trace.events[0].predicted_us = INFINITY;
  trace.events[0].end = trace.events[0].start - Duration(5);
  trace.events[0].wait = Duration(-5);
  trace.events[1].queued = trace.events[1].end + Duration(5);
  const auto read = trace_from_chrome_json(to_chrome_json(trace));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->stretch, 1);
  EXPECT_EQ(read->events[0].predicted_us, 0);
  EXPECT_EQ(read->events[0].end, read->events[0].start);
  EXPECT_EQ(read->events[0].wait, Duration{});
}

TEST(TraceReader, ReadsOtherProgramsEvents) {
  const char* const text = R"([
    {"ph": "B", "name": "not complete", "ts": 1},
    {"name": "work", "cat": "x,y", "ph": "X", "ts": 1700000000000000.5, "dur": 2, "pid": 5, "tid": 9,
     "args": {"deep": [[{"a": []}], 1], "rows": 3}, "more": {"pass": "not ours"}, "cname": null},
    {"name": "process_name", "ph": "M", "pid": 5, "args": {"name": 3}},
    {"name": "thread_name", "ph": "M", "pid": 5, "tid": 9, "args": {"name": "late"}},
    {"name": "work", "ph": "X", "ts": 3, "dur": 0, "pid": 6, "tid": 9}
  ])";
  const auto read = trace_from_chrome_json(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->events.size(), 2u);
  EXPECT_EQ(read->events[0].device, "late");
  EXPECT_EQ(read->events[0].rows, 3);
  EXPECT_EQ(read->events[0].pass, 0);
  EXPECT_EQ(read->events[0].layer, -1);
  EXPECT_EQ(read->events[0].queued, read->events[0].start);
  EXPECT_EQ(read->events[1].device, "thread 9");
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(TraceReader, RefusesWhatIsNoTrace) {
  const std::vector<Bad> cases = {
      {"", "not valid JSON at byte"},
      {"{", "not valid JSON at byte"},
      {"7", "neither a JSON object nor an array"},
      {"{}", "traceEvents is missing"},
      {R"({"version": 1})", "traceEvents is missing"},
      {R"({"traceEvents": 5})", "traceEvents is not an array"},
      {R"({"traceEvents": {}})", "traceEvents is not an array"},
      {R"({"traceEvents": [], "otherData": []})", "otherData is not an object"},
      {R"({"traceEvents": [{"ph":"i"}, 5]})", "event 1 is not an object"},
      {R"({"traceEvents": [[]]})", "event 0 is not an object"},
      {R"({"traceEvents": [{"ph":"i"}, {"ph":"i"},)", "not valid JSON at byte 41, after event 1"},
      {"{\"traceEvents\": [{\"ph\": \"\xff\"}]}", "not valid JSON"},
      {R"({"traceEvents": [], "otherData": {"simulated": 1}})",
       "otherData.simulated is 1, not true or false"},
      {R"({"traceEvents": [], "otherData": {"stretch": 0}})", "otherData.stretch is 0, not"},
      {R"({"traceEvents": [], "otherData": {"title": {}}})", "otherData.title is an object, not"},
  };
  for (const Bad& bad : cases) {
    const auto read = trace_from_chrome_json(bad.text);
    ASSERT_FALSE(read.has_value()) << bad.text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(read.error().message, HasSubstr(bad.message)) << bad.text;
  }
}

TEST(TraceReader, NamesTheEventAndTheFieldThatIsWrong) {
  struct Wrong {
    const char* pointer;
    json value;
    const char* message;
  };
  const std::vector<Wrong> cases = {
      {"/name", 5, "name is 5, not a string"},
      {"/name", std::string(2000, 'x'), "not a string of at most 1024 bytes"},
      {"/cat", false, "cat is false, not a string"},
      {"/ph", nullptr, "ph is null, not a string"},
      {"/tid", "cpu", "tid is \"cpu\", not a whole number"},
      {"/pid", 0.5, "pid is 0.5, not a whole number"},
      {"/ts", -1, "ts is -1, not a number from 0 to"},
      {"/ts", "1", "ts is \"1\", not a number"},
      {"/ts", 1e300, "ts is 1e+300, not a number"},
      {"/dur", -0.5, "dur is -0.5, not a number from 0 to 1000000000000"},
      {"/dur", json::array({1}), "dur is an array, not a number"},
      {"/args", 7, "args is 7, not an object"},
      {"/args", json::array(), "args is an array, not an object"},
      {"/args/pass", -1, "args.pass is -1, not a whole number from 0"},
      {"/args/layer", -2, "args.layer is -2, not a whole number from -1 to 1073741824"},
      {"/args/layer", UINT64_MAX, "args.layer is 18446744073709551615, not a whole number"},
      {"/args/chunk", 1.5, "args.chunk is 1.5"},
      {"/args/sequences", int64_t{1} << 40, "args.sequences is 1099511627776"},
      {"/args/row_begin", -1, "args.row_begin is -1"},
      {"/args/rows", nullptr, "args.rows is null"},
      {"/args/bytes", INT64_MAX, "args.bytes is 9223372036854775807"},
      {"/args/copy_bytes", -1, "args.copy_bytes is -1"},
      {"/args/macs", "many", "args.macs is \"many\""},
      {"/args/queued_us", -1, "args.queued_us is -1"},
      {"/args/wait_us", 1e13, "args.wait_us is 10000000000000.0"},
      {"/args/delay_us", true, "args.delay_us is true"},
      {"/args/predicted_us", -1, "args.predicted_us is -1"},
  };
  const json sound = json::parse(to_chrome_json(full_trace()));
  const size_t last = sound["traceEvents"].size() - 1;
  for (const Wrong& wrong : cases) {
    json root = sound;
    root["traceEvents"][last][json::json_pointer(wrong.pointer)] = wrong.value;
    const auto read = trace_from_chrome_json(root.dump());
    ASSERT_FALSE(read.has_value()) << wrong.message;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(read.error().message, HasSubstr(wrong.message));
    EXPECT_THAT(read.error().message, HasSubstr(fmt::format("trace: event {}: ", last)));
  }
  for (const char* missing : {"name", "ph", "ts", "dur"}) {
    json root = sound;
    root["traceEvents"][last].erase(missing);
    const auto read = trace_from_chrome_json(root.dump());
    ASSERT_FALSE(read.has_value()) << missing;
    EXPECT_EQ(read.error().message, fmt::format("trace: event {}: {} is missing", last, missing));
  }
}

TEST(TraceReader, MessagesStayShort) {
  json root = json::parse(to_chrome_json(full_trace()));
  root["traceEvents"].back()["ts"] = std::string(100'000, '\n');
  const auto read = trace_from_chrome_json(root.dump());
  ASSERT_FALSE(read.has_value());
  EXPECT_LT(read.error().message.size(), 500u);
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
}

TEST(TraceReader, BoundsDepthDigitsAndThreads) {
  const std::string deep(1'000'000, '[');
  const std::string digits(1'000'000, '9');
  std::string threads = "[";
  for (int i = 0; i < 257; ++i) {
    threads += fmt::format("{}{{\"name\":\"\",\"ph\":\"X\",\"ts\":0,\"dur\":0,\"tid\":{}}}",
                           i == 0 ? "" : ",", i);
  }
  for (const auto& [text, message] :
       {std::pair{R"({"a":)" + deep, "nested deeper than 64"},
        std::pair{"[{\"args\":{\"a\":" + deep, "nested deeper than 64"},
        std::pair{"[{\"ts\":" + digits + "}]", "more than 100 digits"},
        std::pair{threads + "]", "event 256: tid is one of more than 256"}}) {
    const auto read = trace_from_chrome_json(text);
    ASSERT_FALSE(read.has_value()) << message;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidData);
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace troika
