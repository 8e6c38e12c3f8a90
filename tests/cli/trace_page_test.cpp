// The page of `troika trace --html` in a browser: its script runs, and what a trace says stays
// text. Says that it was skipped where there is no Chromium.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>

#include "tests/cli/program.h"

namespace troika {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    out.append(buffer.data(), n);
  }
  pclose(pipe);
  return out;
}

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::string path = output_of("command -v " + std::string(name));
    if (!path.empty()) return name;
  }
  return "";
}

// Two devices and two passes; every text tries to be markup.
json hostile_trace() {
  const std::string text = "</script><img src=x onerror=\"document.body.id='harmed'\"><b>&lt;";
  json events = json::array();
  for (const int tid : {1, 2}) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", tid},
                      {"args", {{"name", text + std::to_string(tid)}, {"description", text}}}});
    for (const int pass : {0, 1}) {
      events.push_back({{"name", text},
                        {"cat", "G1"},
                        {"ph", "X"},
                        {"pid", 1},
                        {"tid", tid},
                        {"ts", 100 * pass + 10 * tid},
                        {"dur", 50},
                        {"args", {{"pass", pass}, {"rows", 9}, {"wait_us", 5}}}});
    }
  }
  return {{"otherData", {{"simulated", true}, {"title", text}, {"description", text}}},
          {"traceEvents", events}};
}

// The document after its script ran; empty if the browser did not load the page, for which a busy
// machine gets three tries, each with settings of its own: a browser that finds the settings of one
// that still runs hands the page to it and says nothing of it.
std::string document_of(const std::string& page) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::string settings = scratch_folder() + "/browser-XXXXXX";
    std::string document =
        output_of("timeout 60 " + browser() +
                  " --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"
                  " --user-data-dir=$(mktemp -d " +
                  settings + ") --dump-dom file://" + page + " 2>/dev/null");
    const bool whole = document.find("id=\"title\"") != std::string::npos &&
                       document.find("</html>") != std::string::npos;
    if (whole) return document;
  }
  return "";
}

class TracePage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "no Chromium to open the page with";
    const std::string file = scratch_folder() + "/trace.json";
    const std::string page = scratch_folder() + "/trace.html";
    std::ofstream(file) << hostile_trace();
    const Outcome made = troika_run({"trace", file, "--html", page});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    document_ = document_of(page);
    if (document_.empty()) GTEST_SKIP() << browser() << " did not load the page";
  }

  std::string document_;
};

TEST_F(TracePage, ItsScriptFillsItIn) {
  const auto figure = [this](const std::string& pattern) {
    return std::regex_search(document_, std::regex(pattern));
  };
  EXPECT_TRUE(figure("id=\"banner\"[^>]*>SIMULATED"));
  EXPECT_TRUE(figure("<dt>Joins</dt><dd>4<small>"));
  EXPECT_TRUE(figure("<dd>160 \xc2\xb5s<small>4 tasks, 2 passes</small>"));
  EXPECT_TRUE(figure("<th scope=\"row\" class=\"name\">prefill</th><td>2</td><td>18</td>"));
  // The last thing that the script does is to draw and to tell what is seen.
  EXPECT_THAT(document_, HasSubstr("aria-pressed=\"true\">All</button>"));
}

TEST_F(TracePage, TextsOfTheTraceStayText) {
  EXPECT_THAT(document_, HasSubstr("<h1 id=\"title\">&lt;/script&gt;&lt;img src=x"));
  EXPECT_THAT(document_, Not(HasSubstr("<img")));
  EXPECT_THAT(document_, Not(HasSubstr("id=\"harmed\"")));
}

}  // namespace
}  // namespace troika
