#include "troika/engine/stop_strings.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace troika::engine
