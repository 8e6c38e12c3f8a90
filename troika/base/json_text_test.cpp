#include "troika/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace troika {
namespace {

using nlohmann::json;

TEST(JsonText, AValueIsOneShortLineOfAscii) {
  EXPECT_EQ(shown(json(1.5)), "1.5");
  EXPECT_EQ(shown(json("a\nb")), "\"a\\nb\"");
  EXPECT_EQ(shown(json("\xc3\xa4\xff")), "\"\\u00e4\\ufffd\"");
  EXPECT_EQ(shown(json(nullptr)), "null");
  EXPECT_EQ(shown(json::array()), "an array");
  EXPECT_EQ(shown(json::object()), "an object");
  EXPECT_EQ(shown(json(std::string(1000, 'x'))), "\"" + std::string(60, 'x') + "\"...");
}

TEST(JsonText, KeysThatStandTwiceAreTold) {
  const auto told = [](std::string_view text) {
    const Status status = check_json_keys(text, "plan");
    return status ? "" : status.error().message;
  };
  for (const char* text : {"1", "[]", R"({"a":{"a":1},"b":[{"a":2},{"a":3}]})", R"({"":0})"}) {
    EXPECT_EQ(told(text), "") << text;
  }
  EXPECT_EQ(told(R"({"a":1,"b":2,"a":1})"), R"(plan: "a" stands twice in one object: leave one)");
  EXPECT_EQ(told(R"([{"x":[{"b":1,"c":{"b":2},"b":3}]}])"),
            R"(plan: "b" stands twice in one object: leave one)");
  EXPECT_EQ(told(R"({"":1,"":2})"), R"(plan: "" stands twice in one object: leave one)");
}

TEST(JsonText, NothingMayFollowAZeroByte) {
  using namespace std::string_view_literals;
  const JsonBounds bounds{16, 100, 100};
  EXPECT_TRUE(check_json_size("[1]", "plan", bounds).has_value());
  const Status status = check_json_size("[1]\0[2]"sv, "plan", bounds);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "plan: not valid JSON at byte 4");
}

}  // namespace
}  // namespace troika
