// Finds stop strings in a stream of text, across the borders of its pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troika::engine {

// An Aho-Corasick automaton over bytes: the time is linear in the text however many stop strings
// there are, and how the text is cut into pieces changes nothing, not even inside a character.
// The stop string that ends first counts; of those that end at the same byte, the longest.
class StopStrings {
 public:
  // Empty strings are ignored. Takes about 24 bytes of memory for each byte of them.
  explicit StopStrings(const std::vector<std::string>& stops);

  // Adds text and returns what can be no part of a stop string any more: up to the first stop
  // string if one is complete, without it. After that, text is dropped.
  std::string push(std::string_view text);
  // No more text comes: returns what was held back.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  // A beginning of a stop string; node 0 is the empty one.
  struct Node {
    uint8_t byte = 0;
    int32_t first_child = -1;
    int32_t next_sibling = -1;
    int32_t fail = 0;   // the longest shorter beginning that this one ends with
    int32_t depth = 0;  // bytes
    int32_t match = 0;  // bytes of the longest stop string that this one ends with
  };

  Node& node(int32_t index) { return nodes_[static_cast<size_t>(index)]; }
  int32_t child(int32_t parent, uint8_t byte);
  int32_t step(int32_t from, uint8_t byte);
  void add(std::string_view stop);
  void link();

  std::vector<Node> nodes_;
  int32_t state_ = 0;
  std::string held_;  // the bytes of `state_`
  bool stopped_ = false;
};

}  // namespace troika::engine
