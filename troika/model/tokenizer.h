// Text to token ids and back: byte-level BPE with the pre-tokenizers that GGUF names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::model {

using TokenId = int32_t;

// GGUF's tokenizer.ggml.token_type values.
enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// What the GGUF file says of its tokenizer, as read; Tokenizer::create checks it.
struct TokenizerData {
  std::string model;  // tokenizer.ggml.model: "gpt2" is byte-level BPE
  std::string pre;    // tokenizer.ggml.pre: "smollm", "llama-bpe", "gpt-2", ...
  std::vector<std::string> tokens;
  std::vector<TokenType> types;     // empty: all normal
  std::vector<std::string> merges;  // "left right", best first
  std::optional<TokenId> bos, eos, eot, unk, pad;
  std::optional<bool> add_bos, add_eos;  // as the file says; unset: the pre-tokenizer's default
  bool add_space_prefix = false;
};

// A piece of text and whether names of special tokens in it are meant as such. Text typed by a user
// has parse_special = false: it never becomes a control token.
struct TextSpan {
  std::string_view text;
  bool parse_special = false;
};

// Immutable after create(); any thread may use it.
class Tokenizer {
 public:
  static Result<Tokenizer> create(TokenizerData data);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Tokens of the spans' joined text. A special token is found only inside one parse_special span;
  // the text between special tokens is joined across spans before it is cut into words, so that a
  // rendered chat template gives the tokens of the same text in one piece. Never adds BOS or EOS.
  // Bytes that are not UTF-8 are encoded as bytes, not refused.
  std::vector<TokenId> encode(std::span<const TextSpan> spans) const;
  std::vector<TokenId> encode(std::string_view text, bool parse_special) const;

  // The bytes of one token: of a special token its name if `render_special`, else nothing.
  // May be part of a UTF-8 sequence. `id` outside the vocabulary gives an empty string.
  std::string piece(TokenId id, bool render_special) const;
  std::string decode(std::span<const TokenId> ids, bool render_special) const;

  int64_t vocab_size() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos() const;  // whether a prompt begins with BOS unless it already does
  bool add_eos() const;
  // True for EOS, EOT and the other tokens that end a turn (<|im_end|>, <|eot_id|>, ...).
  bool is_end_of_generation(TokenId id) const;
  bool is_special(TokenId id) const;  // control or unknown type
  // The name as the file gives it, for display ("Ġhello", "<|im_start|>").
  std::string_view name(TokenId id) const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Collects the bytes of a stream of tokens and releases only whole UTF-8 sequences; invalid bytes
// come out as U+FFFD once it is sure that no later byte makes them valid.
class Utf8Stream {
 public:
  // Adds bytes and returns what is complete by now.
  std::string push(std::string_view bytes);
  // Returns what is left, incomplete sequences as U+FFFD.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace troika::model
