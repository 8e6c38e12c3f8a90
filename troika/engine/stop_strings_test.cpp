#include "troika/engine/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace troika::engine {
namespace {

// All that comes out when `text` is pushed in pieces of `piece` bytes.
std::string stream(StopStrings stops, const std::string& text, size_t piece) {
  std::string out;
  for (size_t i = 0; i < text.size() && !stops.stopped(); i += piece) {
    out += stops.push(text.substr(i, piece));
  }
  return out + stops.finish();
}

TEST(StopStrings, EndBeforeTheFirstOneInAnyPieces) {
  for (size_t piece = 1; piece <= 12; ++piece) {
    EXPECT_EQ(stream(StopStrings({"END", "\n\n"}), "one ENE END two", piece), "one ENE ");
    EXPECT_EQ(stream(StopStrings({"END", "\n\n"}), "one\n\nEND", piece), "one");
    EXPECT_EQ(stream(StopStrings({"aab"}), "aaab", piece), "a");
    EXPECT_EQ(stream(StopStrings({"END"}), "no stop EN", piece), "no stop EN");
    EXPECT_EQ(stream(StopStrings({}), "plain", piece), "plain");
    EXPECT_EQ(stream(StopStrings({""}), "plain", piece), "plain");
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeOne) {
  StopStrings stops({"<end>"});
  EXPECT_EQ(stops.push("a <e"), "a ");
  EXPECT_EQ(stops.push("m> b"), "<em> b");
  EXPECT_EQ(stops.push("<end>c"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

// What comes out by the definition: the text before the stop string that ends first.
std::string expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST(StopStrings, RandomTextsEndWhereTheDefinitionSays) {
  std::mt19937 random(1);
  const auto word = [&](size_t most) {
    std::string out;
    for (size_t n = random() % most + 1; n > 0; --n) out += "ab\xc3"[random() % 3];
    return out;
  };
  int stopped = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> stops;
    for (size_t n = random() % 5; n > 0; --n) stops.push_back(word(8));
    const std::string text = word(40);
    const std::string wanted = expected(stops, text);
    stopped += wanted != text ? 1 : 0;
    for (const size_t piece : {1, 2, 3, 7, 40}) {
      EXPECT_EQ(stream(StopStrings(stops), text, piece), wanted) << text;
    }
  }
  EXPECT_GT(stopped, 500);
}

TEST(StopStrings, ManyAndLongOnesCostNoMoreThanFew) {
  std::vector<std::string> stops;
  for (int i = 0; i < 10000; ++i) stops.push_back(std::string(20, 'a') + std::to_string(i));
  stops.push_back(std::string(100000, 'a') + "b");
  StopStrings many(stops);
  std::string out;
  for (int i = 0; i < 300000; ++i) out += many.push("a");
  EXPECT_EQ(out.size(), 200000U);
  EXPECT_EQ(many.push("b"), "");
  EXPECT_TRUE(many.stopped());
}

}  // namespace
}  // namespace troika::engine
