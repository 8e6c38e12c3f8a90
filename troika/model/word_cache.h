// The tokens of words seen before in the same call: texts repeat their words, and merging one
// takes far longer than looking it up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troika/model/tokenizer.h"

namespace troika::model {

// Remembers where in the output a word's tokens stand, so it copies neither words nor tokens.
// Words and output must stay as long as the cache is used.
class WordCache {
 public:
  // For texts too short to repeat themselves the cache stays empty.
  explicit WordCache(size_t text_bytes);

  // Appends to `out` the tokens of an equal word remembered before; false if there is none.
  bool append_known(std::string_view word, std::vector<TokenId>& out) const;
  // The tokens of `word` are those from `begin` to `end` of the output.
  void remember(std::string_view word, size_t begin, size_t end);

 private:
  struct Entry {
    std::string_view word;
    uint32_t begin = 0;
    uint32_t count = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace troika::model
