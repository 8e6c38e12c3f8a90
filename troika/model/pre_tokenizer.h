// Cuts a text into the words that byte-pair merging never crosses, by the regular expressions
// that GGUF's tokenizer.ggml.pre names.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

// Immutable; any thread may use it.
class PreTokenizer {
 public:
  // `name` as in the file; empty is "default". kUnsupported for a name not known here.
  static Result<PreTokenizer> create(std::string_view name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Calls `word` with the words of `text` from left to right; joined they are `text`. Time is
  // linear in the text's length. A byte that is not UTF-8 counts as a symbol like U+FFFD.
  void for_each_word(std::string_view text,
                     const std::function<void(std::string_view)>& word) const;

  // Whether a word that is itself a token is taken at once, whatever the merges would give.
  bool takes_whole_words() const { return takes_whole_words_; }
  // Whether a prompt begins with BOS when the file does not say.
  bool adds_bos() const { return adds_bos_; }

 private:
  class Regex;
  PreTokenizer();
  // `piece` is the part of `subject` that the first `step` expressions left in one piece.
  void split(size_t step, std::string_view piece,
             const std::function<void(std::string_view)>& word) const;

  std::vector<std::unique_ptr<Regex>> steps_;
  bool takes_whole_words_ = false;
  bool adds_bos_ = false;
};

}  // namespace troika::model
