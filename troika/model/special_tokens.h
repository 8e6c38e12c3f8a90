// Finds the tokens that are written out in a text by name: control tokens ("<|im_start|>") where
// they are meant as such, and user-defined tokens everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/tokenizer.h"

namespace troika::model {

// Immutable; any thread may use it.
class SpecialTokens {
 public:
  // A token found at `begin` in the text.
  struct Match {
    size_t begin;
    size_t length;
    TokenId id;
  };

  // Longer names would make looking for them slow; kInvalidData.
  static constexpr size_t kMaxNameBytes = 512;

  static Result<SpecialTokens> create(const std::vector<std::string>& tokens,
                                      const std::vector<TokenType>& types);

  // The tokens in the joined text of `spans`, which `text` holds, in the order of the text. Where
  // matches overlap the longest wins, then the leftmost. Control and unknown tokens are found
  // only inside one span that has parse_special; user-defined ones also across spans.
  std::vector<Match> find(std::string_view text, std::span<const TextSpan> spans) const;

 private:
  // The names as a tree of bytes: children of a node are linked through `sibling`.
  struct Node {
    uint8_t byte = 0;
    bool user_defined = false;
    TokenId id = -1;     // the token whose name ends here
    int32_t child = -1;  // first child
    int32_t sibling = -1;
  };

  void add(std::string_view name, TokenId id, bool user_defined);
  int32_t child_of(int32_t node, uint8_t byte) const;
  // The longest token that begins `text` and has less than `below` bytes; control tokens must end
  // within the first `parsed` bytes. Length 0 if there is none.
  Match longest(std::string_view text, size_t parsed, size_t below) const;

  std::vector<Node> nodes_ = {Node{}};
  std::array<bool, 256> begins_name_{};  // by byte: most positions of a text need no more
};

}  // namespace troika::model
