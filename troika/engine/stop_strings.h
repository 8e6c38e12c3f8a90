// Finds stop strings in a stream of text, across the borders of its pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troika::engine {

class StopStrings {
 public:
  // Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  // Adds text and returns what can be no part of a stop string any more: up to the first stop
  // string if one is complete, without it. After that, text is dropped.
  std::string push(std::string_view text);
  // No more text comes: returns what was held back.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace troika::engine
