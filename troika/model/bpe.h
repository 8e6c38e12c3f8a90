// Byte-pair merging: the bytes of a word become tokens, joined pair by pair, best merge first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/hash_index.h"
#include "troika/model/tokenizer.h"

namespace troika::model {

// Immutable; any thread may use it, with a Workspace of its own.
class Bpe {
 public:
  // Reused between words so that encoding does not allocate.
  struct Workspace {
    struct Symbol {
      TokenId id;
      int32_t previous, next;  // positions; -1 at the ends
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;
    std::string name;
  };

  // `tokens` must outlive the Bpe. Tokens for which `is_special` holds are never produced. Of
  // equal names the last counts, of equal merges the first. kInvalidData for a merge whose parts
  // or result are no tokens. `seed` varies the hash tables, so that no file can be made to slow
  // them down.
  static Result<Bpe> create(const std::vector<std::string>& tokens,
                            const std::vector<bool>& is_special,
                            const std::vector<std::string>& merges, uint64_t seed);

  // Appends the tokens of one word, in O(n log n) time. A byte that the vocabulary lacks gives
  // nothing. Words of more than kMaxWordBytes are cut there, to bound memory.
  void encode(std::string_view word, bool take_whole_word, Workspace& workspace,
              std::vector<TokenId>& out) const;

  bool has_byte(uint8_t byte) const { return byte_ids_[byte] >= 0; }

  static constexpr size_t kMaxWordBytes = size_t{4} << 20;

 private:
  struct Merge {
    TokenId left, right, result;
  };

  explicit Bpe(uint64_t seed) : names_(seed), ranks_(seed) {}
  Status add_merge(std::string_view merge);
  TokenId find(std::string_view name) const;
  TokenId whole_word(std::string_view word, std::string& name) const;
  void merge_symbols(Workspace& workspace) const;
  void push_pair(Workspace& workspace, int32_t left) const;

  const std::vector<std::string>* tokens_ = nullptr;
  std::vector<bool> usable_;  // by token: may come out of encode()
  NameIndex names_;
  PairIndex ranks_;            // (left, right) -> rank
  std::vector<Merge> merges_;  // by rank
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace troika::model
