// The page of a trace: what it embeds, and that a trace's texts stay texts.
#include "cli/trace_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/trace_report.h"

namespace troika::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile =
    "</script><script>alert(1)</script><!--<b>&amp;\" \xe2\x80\xa8 ]]>";

TraceEvent task(const std::string& name, const std::string& device, int64_t pass, int start_us,
                int end_us) {
  TraceEvent event;
  event.name = name;
  event.device = device;
  event.pass = pass;
  event.rows = 1;
  event.queued = Duration(5'000);
  event.start = Duration(start_us * int64_t{1000});
  event.end = Duration(end_us * int64_t{1000});
  return event;
}

Trace hostile_trace() {
  Trace trace;
  trace.title = kHostile;
  trace.description = kHostile;
  trace.devices = {{kHostile, kHostile}};
  trace.events = {task(kHostile, kHostile, 0, 10, 20)};
  return trace;
}

std::string page_of(const Trace& trace) { return trace_page(trace, summarize(trace, 3)); }

// The JSON that the page embeds.
Json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"trace\">";
  const size_t begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin), nullptr, false);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(TracePage, NeedsNothingFromElsewhere) {
  const std::string page = page_of(hostile_trace());
  for (const char* part : {"http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(",
                           "XMLHttpRequest", "WebSocket", "import(", "<link", "<iframe"}) {
    EXPECT_THAT(page, Not(HasSubstr(part)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(TracePage, KeepsTextsOfTheTraceFromBecomingMarkup) {
  const std::string page = page_of(hostile_trace());
  const std::string plain = page_of({});
  for (const char* mark : {"<script", "</script", "<!--", "<b>"}) {
    EXPECT_EQ(count(page, mark), count(plain, mark)) << mark;
  }
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  const Json data = data_of(page);
  ASSERT_FALSE(data.is_discarded());
  EXPECT_EQ(data["summary"]["title"], kHostile);
  EXPECT_EQ(data["summary"]["devices"][0]["name"], kHostile);
  EXPECT_EQ(data["events"]["names"][0], kHostile);
  EXPECT_EQ(count(page, "<title>&lt;/script&gt;"), 1u);
}

// Texts go in as they are: nothing in them is taken for a place to fill in.
TEST(TracePage, MarksOfTheTemplateAreTextInATrace) {
  Trace trace = hostile_trace();
  trace.title = "@DATA@ @SCRIPT@ @STYLE@ @TITLE@";
  const std::string page = page_of(trace);
  EXPECT_EQ(data_of(page)["summary"]["title"], trace.title);
  EXPECT_EQ(count(page, "id=\"trace\""), 1u);
  EXPECT_EQ(count(page_of({}), "@DATA@"), 0u);
}

TEST(TracePage, RepairsTextsThatAreNotUtf8) {
  Trace trace = hostile_trace();
  trace.title = trace.events[0].name = trace.devices[0].description = "\xff\xfe";
  EXPECT_FALSE(data_of(page_of(trace)).is_discarded());
}

TEST(TracePage, HoldsEveryEventInColumns) {
  Trace trace;
  trace.simulated = true;
  trace.devices = {{"b", ""}};
  trace.events = {task("G1", "a", 1, 30, 40), task("G2", "b", 3, 50, 60),
                  task("G1", "a", 0, 10, 20)};
  trace.events[1].wait = Duration(7);
  const Json data = data_of(page_of(trace));
  EXPECT_EQ(data["summary"]["simulated"], true);
  const Json& events = data["events"];
  EXPECT_EQ(events["count"], 3);
  EXPECT_EQ(events["names"], Json::parse(R"(["G1", "G2"])"));
  EXPECT_EQ(events["kinds"].size(), 2u);
  EXPECT_EQ(events["kind"], Json::parse("[0, 0, 1]"));
  EXPECT_EQ(events["kinds"][1][2], 0);  // device b, which was declared first
  EXPECT_EQ(events["start"], Json::parse("[5000, 20000, 20000]"));  // each from the one before
  EXPECT_EQ(events["took"], Json::parse("[10000, 10000, 10000]"));
  EXPECT_EQ(events["queued"], Json::parse("[5000, 25000, 45000]"));
  EXPECT_EQ(events["pass"], Json::parse("[0, 1, 2]"));
  EXPECT_EQ(events["wait"], Json::parse("[0, 0, 7]"));
  EXPECT_FALSE(events.contains("delay"));
  EXPECT_EQ(data["passes"].size(), 3u);
  EXPECT_EQ(data["passes"][0], Json::parse("[0, 1, true, 5000, 15000]"));
}

TEST(TracePage, StaysSmallForManyEvents) {
  Trace trace;
  for (int i = 0; i < 100'000; ++i) {
    trace.events.push_back(task("G1 layer " + std::to_string(i % 30), "cpu", i / 30, i, i + 1));
  }
  EXPECT_LT(page_of(trace).size(), size_t{4} << 20);
}

TEST(TraceReport, TellsSimulatedAndStretched) {
  Trace trace = hostile_trace();
  EXPECT_THAT(trace_text(trace, summarize(trace, 1)), ::testing::StartsWith("measured"));
  trace.simulated = true;
  trace.stretch = 2.5;
  const std::string text = trace_text(trace, summarize(trace, 1));
  EXPECT_THAT(text, ::testing::StartsWith("SIMULATED"));
  EXPECT_THAT(text, HasSubstr("stretched: every time is 2.5 times"));
  const Json json = trace_json(trace, summarize(trace, 1));
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["stretch"], 2.5);
}

TEST(TraceReport, KeepsControlCharactersFromTheTerminal) {
  Trace trace = hostile_trace();
  trace.title = trace.events[0].name = trace.events[0].device = "\x1b[31m\r\a";
  trace.devices[0] = {trace.title, trace.title};
  for (const char c : trace_text(trace, summarize(trace, 5))) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << int{c};
  }
}

TEST(TraceReport, ComparesPredictionsWithWhatTasksTook) {
  Trace trace;
  trace.events = {task("G1", "a", 0, 0, 30), task("G2", "a", 0, 30, 40)};
  EXPECT_THAT(trace_text(trace, summarize(trace, 0)), Not(HasSubstr("predictions")));
  trace.events[0].predicted_us = 20;
  const std::string text = trace_text(trace, summarize(trace, 0));
  EXPECT_THAT(text, HasSubstr("predictions"));
  EXPECT_THAT(text, HasSubstr("1.50"));
}

}  // namespace
}  // namespace troika::cli
