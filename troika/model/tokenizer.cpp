#include "troika/model/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "troika/model/bpe.h"
#include "troika/model/byte_map.h"
#include "troika/model/end_tokens.h"
#include "troika/model/pre_tokenizer.h"
#include "troika/model/special_tokens.h"
#include "troika/model/utf8.h"
#include "troika/model/word_cache.h"

namespace troika::model {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 30;  // ids are int32_t; no vocabulary comes near

bool is_control(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// The byte that a token of byte type stands for, by its name "<0x0A>".
std::optional<uint8_t> named_byte(std::string_view name) {
  if (name.size() != 6 || name.substr(0, 3) != "<0x" || name[5] != '>') return std::nullopt;
  int value = 0;
  for (char c : name.substr(3, 2)) {
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return static_cast<uint8_t>(value);
}

Status check_id(std::string_view key, std::optional<TokenId> id, size_t n_tokens) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < n_tokens)) return {};
  return make_error(ErrorCode::kInvalidData,
                    "[model/tokenizer] tokenizer.ggml.{} is {}, but the vocabulary has {} tokens",
                    key, *id, n_tokens);
}

Status check(const TokenizerData& data) {
  const size_t n = data.tokens.size();
  if (data.model != "gpt2") {
    return make_error(ErrorCode::kUnsupported,
                      "[model/tokenizer] tokenizer.ggml.model is \"{}\"; supported is \"gpt2\" "
                      "(byte-level BPE)",
                      data.model.substr(0, 100));
  }
  if (n == 0 || n > kMaxTokens) {
    return make_error(ErrorCode::kInvalidData, "[model/tokenizer] the vocabulary has {} tokens", n);
  }
  if (!data.types.empty() && data.types.size() != n) {
    return make_error(ErrorCode::kInvalidData,
                      "[model/tokenizer] there are {} token types for {} tokens", data.types.size(),
                      n);
  }
  RETURN_IF_ERROR(check_id("bos_token_id", data.bos, n));
  RETURN_IF_ERROR(check_id("eos_token_id", data.eos, n));
  RETURN_IF_ERROR(check_id("eot_token_id", data.eot, n));
  RETURN_IF_ERROR(check_id("unknown_token_id", data.unk, n));
  RETURN_IF_ERROR(check_id("padding_token_id", data.pad, n));
  for (size_t id = 0; id < data.types.size(); ++id) {
    if (data.types[id] == TokenType::kByte && !named_byte(data.tokens[id])) {
      return make_error(ErrorCode::kInvalidData,
                        "[model/tokenizer] token {} is of byte type but is named \"{}\", not like "
                        "<0x0A>",
                        id, data.tokens[id].substr(0, 80));
    }
  }
  if (data.add_bos.value_or(false) && !data.bos) {
    return make_error(ErrorCode::kInvalidData,
                      "[model/tokenizer] add_bos_token is set, but there is no bos_token_id");
  }
  if (data.add_eos.value_or(false) && !data.eos) {
    return make_error(ErrorCode::kInvalidData,
                      "[model/tokenizer] add_eos_token is set, but there is no eos_token_id");
  }
  return {};
}

// The ids that end generation, sorted. Their types become control: a file that gives them
// another type would let typed text end a turn.
std::vector<TokenId> mark_end_tokens(TokenizerData& data) {
  std::vector<TokenId> ends;
  std::optional<TokenId> plain_end;  // <|end|>
  bool returns = false, calls = false, flushes = false;
  for (size_t i = 0; i < data.tokens.size(); ++i) {
    const std::string& name = data.tokens[i];
    if (!names_end_of_generation(name)) continue;
    const TokenId id = static_cast<TokenId>(i);
    if (name == "<|end|>") plain_end = id;
    returns |= name == "<|return|>";
    calls |= name == "<|call|>" || name == "<|calls|>";
    flushes |= name == "<|flush|>";
    ends.push_back(id);
    if (!is_control(data.types[i])) data.types[i] = TokenType::kControl;
  }
  for (std::optional<TokenId> id : {data.eos, data.eot}) {
    if (id) ends.push_back(*id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  // Where a turn has several messages, <|end|> only ends one of them.
  if (plain_end && calls && (returns || flushes)) {
    ends.erase(std::find(ends.begin(), ends.end(), *plain_end));
  }
  return ends;
}

}  // namespace

struct Tokenizer::State {
  State(TokenizerData&& checked, std::vector<TokenId>&& end_ids, PreTokenizer&& cutter,
        SpecialTokens&& found, std::vector<bool>&& special)
      : data(std::move(checked)),
        ends(std::move(end_ids)),
        pre_tokenizer(std::move(cutter)),
        special_tokens(std::move(found)),
        is_special(std::move(special)) {}

  void encode_text(std::string_view text, WordCache& cache, Bpe::Workspace& workspace,
                   std::vector<TokenId>& out) const;
  std::string replace_unencodable(std::string_view text) const;
  void append_piece(TokenId id, bool render_special, std::string& out) const;
  bool has(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < data.tokens.size(); }

  TokenizerData data;
  std::vector<TokenId> ends;
  PreTokenizer pre_tokenizer;
  SpecialTokens special_tokens;
  std::vector<bool> is_special;
  std::optional<Bpe> bpe;  // refers to data.tokens
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(TokenizerData data) {
  RETURN_IF_ERROR(check(data));
  ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::create(data.pre));
  if (data.types.empty()) data.types.assign(data.tokens.size(), TokenType::kNormal);
  std::vector<TokenId> ends = mark_end_tokens(data);
  ASSIGN_OR_RETURN(auto special_tokens, SpecialTokens::create(data.tokens, data.types));
  std::vector<bool> is_special(data.tokens.size());
  for (size_t id = 0; id < data.tokens.size(); ++id) is_special[id] = is_control(data.types[id]);

  auto state = std::make_unique<State>(std::move(data), std::move(ends), std::move(pre_tokenizer),
                                       std::move(special_tokens), std::move(is_special));
  // An address is a seed that the author of a file cannot know.
  const uint64_t seed = reinterpret_cast<uintptr_t>(state.get());
  ASSIGN_OR_RETURN(state->bpe,
                   Bpe::create(state->data.tokens, state->is_special, state->data.merges, seed));
  state->data.merges = {};  // by now in the Bpe
  return Tokenizer(std::move(state));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool parse_special) const {
  const TextSpan span{text, parse_special};
  return encode(std::span(&span, 1));
}

std::vector<TokenId> Tokenizer::encode(std::span<const TextSpan> spans) const {
  std::string joined;
  std::string_view text;
  if (spans.size() == 1) {
    text = spans[0].text;
  } else {
    for (const TextSpan& span : spans) joined += span.text;
    text = joined;
  }
  std::vector<TokenId> out;
  WordCache cache(text.size());
  Bpe::Workspace workspace;
  size_t done = 0;
  for (const SpecialTokens::Match& match : state_->special_tokens.find(text, spans)) {
    state_->encode_text(text.substr(done, match.begin - done), cache, workspace, out);
    out.push_back(match.id);
    done = match.begin + match.length;
  }
  state_->encode_text(text.substr(done), cache, workspace, out);
  return out;
}

void Tokenizer::State::encode_text(std::string_view text, WordCache& cache,
                                   Bpe::Workspace& workspace, std::vector<TokenId>& out) const {
  std::string replaced;
  if (valid_utf8_prefix(text) < text.size()) {
    replaced = replace_unencodable(text);
    text = replaced;
  }
  const bool stays = replaced.empty();  // what the cache refers to must stay
  pre_tokenizer.for_each_word(text, [&](std::string_view word) {
    if (stays && cache.append_known(word, out)) return;
    const size_t begin = out.size();
    bpe->encode(word, pre_tokenizer.takes_whole_words(), workspace, out);
    if (stays) cache.remember(word, begin, out.size());
  });
}

// Bytes outside UTF-8 for which the vocabulary has no token become U+FFFD, since they would
// vanish otherwise.
std::string Tokenizer::State::replace_unencodable(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    if (bpe->has_byte(static_cast<uint8_t>(text[0]))) {
      out += text[0];
    } else {
      out += kReplacementCharacter;
    }
    text.remove_prefix(1);
  }
  return out;
}

void Tokenizer::State::append_piece(TokenId id, bool render_special, std::string& out) const {
  if (!has(id)) return;
  const std::string& name = data.tokens[static_cast<size_t>(id)];
  switch (data.types[static_cast<size_t>(id)]) {
    case TokenType::kUnknown:
    case TokenType::kControl:
    case TokenType::kUnused:
      if (render_special) out += name;
      break;
    case TokenType::kUserDefined:
      out += name;
      break;
    case TokenType::kByte:
      out += static_cast<char>(*named_byte(name));
      break;
    default:
      append_named_bytes(name, out);
  }
}

std::string Tokenizer::piece(TokenId id, bool render_special) const {
  std::string out;
  state_->append_piece(id, render_special, out);
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string out;
  for (TokenId id : ids) state_->append_piece(id, render_special, out);
  return out;
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(state_->data.tokens.size()); }
std::optional<TokenId> Tokenizer::bos() const { return state_->data.bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->data.eos; }

bool Tokenizer::add_bos() const {
  return state_->data.bos && state_->data.add_bos.value_or(state_->pre_tokenizer.adds_bos());
}

bool Tokenizer::add_eos() const { return state_->data.eos && state_->data.add_eos.value_or(false); }

bool Tokenizer::is_end_of_generation(TokenId id) const {
  return std::binary_search(state_->ends.begin(), state_->ends.end(), id);
}

bool Tokenizer::is_special(TokenId id) const {
  return state_->has(id) && state_->is_special[static_cast<size_t>(id)];
}

std::string_view Tokenizer::name(TokenId id) const {
  return state_->has(id) ? std::string_view(state_->data.tokens[static_cast<size_t>(id)])
                         : std::string_view();
}

}  // namespace troika::model
