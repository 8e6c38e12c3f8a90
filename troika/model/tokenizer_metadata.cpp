#include "troika/model/tokenizer_metadata.h"

#include <cmath>
#include <limits>
#include <utility>

namespace troika::model {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kMerges = "tokenizer.ggml.merges";

// The array of `key` with its elements as vector<T>; nullptr if the key is absent.
template <class T>
Result<const std::vector<T>*> array_of(const GgufHeader& header, const char* key,
                                       const char* wanted) {
  const auto at = header.metadata.find(key);
  if (at == header.metadata.end()) return static_cast<const std::vector<T>*>(nullptr);
  const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(&at->second);
  const auto* values = array ? std::get_if<std::vector<T>>(&(*array)->values) : nullptr;
  if (values == nullptr) {
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is not an array of {}", key, wanted);
  }
  return values;
}

// Moves the strings out if the header is their only owner.
Result<std::vector<std::string>> take_strings(GgufHeader& header, const char* key) {
  ASSIGN_OR_RETURN(const auto* values, array_of<std::string>(header, key, "strings"));
  if (values == nullptr) return std::vector<std::string>();
  const auto at = header.metadata.find(key);
  auto array = std::get<std::shared_ptr<const GgufArray>>(std::move(at->second));
  header.metadata.erase(at);
  if (array.use_count() > 1) return std::vector<std::string>(*values);
  // The reader makes arrays mutable and shares them as const.
  auto& own = const_cast<GgufArray&>(*array);
  return std::move(std::get<std::vector<std::string>>(own.values));
}

Status wrong_length(const char* key, size_t size, size_t n_tokens) {
  return make_error(ErrorCode::kInvalidData, "metadata '{}' has {} elements for {} tokens", key,
                    size, n_tokens);
}

Status add_type(int64_t value, size_t index, std::vector<TokenType>& out) {
  if (value < static_cast<int64_t>(TokenType::kNormal) ||
      value > static_cast<int64_t>(TokenType::kByte)) {
    return make_error(ErrorCode::kInvalidData, "token {} has the unknown type {}", index, value);
  }
  out.push_back(static_cast<TokenType>(value));
  return {};
}

Result<std::vector<TokenType>> read_types(const GgufHeader& header, size_t n_tokens) {
  std::vector<TokenType> types;
  const auto at = header.metadata.find(kTypes);
  if (at == header.metadata.end()) return types;
  const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(&at->second);
  const auto* with_sign = array ? std::get_if<std::vector<int64_t>>(&(*array)->values) : nullptr;
  const auto* unsigned_ = array ? std::get_if<std::vector<uint64_t>>(&(*array)->values) : nullptr;
  if (with_sign == nullptr && unsigned_ == nullptr) {
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is not an array of integers", kTypes);
  }
  if ((*array)->size() != n_tokens) {
    RETURN_IF_ERROR(wrong_length(kTypes, (*array)->size(), n_tokens));
  }
  types.reserve(n_tokens);
  for (size_t i = 0; i < n_tokens; ++i) {
    const int64_t value = with_sign ? (*with_sign)[i]
                                    : static_cast<int64_t>(std::min<uint64_t>(
                                          (*unsigned_)[i], std::numeric_limits<int32_t>::max()));
    RETURN_IF_ERROR(add_type(value, i, types));
  }
  return types;
}

// Byte-level BPE has no use for scores; that they are well-formed is checked all the same.
Status check_scores(const GgufHeader& header, size_t n_tokens) {
  ASSIGN_OR_RETURN(const auto* scores, array_of<double>(header, kScores, "floats"));
  if (scores == nullptr) return {};
  if (scores->size() != n_tokens) return wrong_length(kScores, scores->size(), n_tokens);
  for (size_t i = 0; i < scores->size(); ++i) {
    if (std::isnan((*scores)[i])) {
      return make_error(ErrorCode::kInvalidData, "the score of token {} is NaN", i);
    }
  }
  return {};
}

Result<std::optional<TokenId>> read_id(const GgufHeader& header, const char* key, size_t n_tokens) {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> id, header.get_uint(key));
  if (!id) return std::optional<TokenId>();
  if (*id >= n_tokens) {
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is {}, but there are {} tokens", key,
                      *id, n_tokens);
  }
  return std::optional<TokenId>(static_cast<TokenId>(*id));
}

Status read_ids(const GgufHeader& header, TokenizerData& data) {
  const size_t n = data.tokens.size();
  ASSIGN_OR_RETURN(data.bos, read_id(header, "tokenizer.ggml.bos_token_id", n));
  ASSIGN_OR_RETURN(data.eos, read_id(header, "tokenizer.ggml.eos_token_id", n));
  ASSIGN_OR_RETURN(data.eot, read_id(header, "tokenizer.ggml.eot_token_id", n));
  ASSIGN_OR_RETURN(data.unk, read_id(header, "tokenizer.ggml.unknown_token_id", n));
  ASSIGN_OR_RETURN(data.pad, read_id(header, "tokenizer.ggml.padding_token_id", n));
  return {};
}

}  // namespace

Result<TokenizerData> take_tokenizer_data(GgufHeader& header) {
  TokenizerData data;
  ASSIGN_OR_RETURN(const auto model, header.get_string("tokenizer.ggml.model"));
  if (!model) {
    return make_error(ErrorCode::kInvalidData,
                      "metadata 'tokenizer.ggml.model' is missing: the file has no tokenizer");
  }
  data.model = *model;
  ASSIGN_OR_RETURN(const auto pre, header.get_string("tokenizer.ggml.pre"));
  data.pre = pre.value_or("");
  ASSIGN_OR_RETURN(data.tokens, take_strings(header, kTokens));
  if (data.tokens.empty()) {
    return make_error(ErrorCode::kInvalidData, "metadata '{}' is missing or empty", kTokens);
  }
  if (data.tokens.size() > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return make_error(ErrorCode::kInvalidData, "{} tokens are too many", data.tokens.size());
  }
  ASSIGN_OR_RETURN(data.merges, take_strings(header, kMerges));
  ASSIGN_OR_RETURN(data.types, read_types(header, data.tokens.size()));
  RETURN_IF_ERROR(check_scores(header, data.tokens.size()));
  RETURN_IF_ERROR(read_ids(header, data));
  ASSIGN_OR_RETURN(data.add_bos, header.get_bool("tokenizer.ggml.add_bos_token"));
  ASSIGN_OR_RETURN(data.add_eos, header.get_bool("tokenizer.ggml.add_eos_token"));
  ASSIGN_OR_RETURN(const auto space, header.get_bool("tokenizer.ggml.add_space_prefix"));
  data.add_space_prefix = space.value_or(false);
  return data;
}

}  // namespace troika::model
