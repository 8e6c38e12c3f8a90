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

}  // namespace
}  // namespace troika
