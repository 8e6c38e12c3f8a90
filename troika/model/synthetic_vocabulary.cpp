#include "troika/model/synthetic_vocabulary.h"

#include "troika/model/byte_map.h"
#include "troika/model/tokenizer.h"

namespace troika::model {
namespace {

constexpr int64_t kFixedTokens = 258;
constexpr int64_t kLetters = 26;
// Two to four letters, the first of which may be a space.
constexpr int64_t kMaxMerges =
    (kLetters + 1) * (kLetters + kLetters * kLetters + kLetters * kLetters * kLetters);

}  // namespace

Result<SyntheticVocabulary> make_synthetic_vocabulary(int64_t n_vocab) {
  if (n_vocab < kFixedTokens || n_vocab > kFixedTokens + kMaxMerges) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a vocabulary of {} tokens cannot be made; {} to {} can", n_vocab,
                      kFixedTokens, kFixedTokens + kMaxMerges);
  }
  SyntheticVocabulary out;
  for (int byte = 0; byte < 256; ++byte) {
    out.tokens.emplace_back(byte_name(static_cast<uint8_t>(byte)));
  }
  const std::string space = out.tokens[' '];
  out.bos = static_cast<int32_t>(out.tokens.size());
  out.tokens.push_back("<s>");
  out.eos = static_cast<int32_t>(out.tokens.size());
  out.tokens.push_back("</s>");
  out.types.assign(static_cast<size_t>(n_vocab), static_cast<int32_t>(TokenType::kNormal));
  out.types[static_cast<size_t>(out.bos)] = static_cast<int32_t>(TokenType::kControl);
  out.types[static_cast<size_t>(out.eos)] = static_cast<int32_t>(TokenType::kControl);

  const auto room = static_cast<size_t>(n_vocab);
  out.tokens.reserve(room);
  std::vector<std::string> shorter = {space};
  for (char c = 'a'; c <= 'z'; ++c) shorter.emplace_back(1, c);
  while (out.tokens.size() < room) {
    std::vector<std::string> longer;
    for (const std::string& left : shorter) {
      for (char right = 'a'; right <= 'z' && out.tokens.size() < room; ++right) {
        out.merges.push_back(left + ' ' + right);
        out.tokens.push_back(left + right);
        longer.push_back(left + right);
      }
    }
    shorter = std::move(longer);
  }
  return out;
}

}  // namespace troika::model
