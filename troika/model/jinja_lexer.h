// Cuts the source of a chat template into text and tokens, with the white-space rules of Jinja
// under trim_blocks and lstrip_blocks (as chat templates are written for).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troika/base/result.h"

namespace troika::model::jinja {

enum class TokenKind {
  kText,
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kName,
  kString,    // text: escapes resolved
  kInteger,   // text: digits as written, without underscores
  kFloat,     // likewise
  kOperator,  // text
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
};

// Ends with a kEnd token. kInvalidData with the line if the source is not well formed.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace troika::model::jinja
