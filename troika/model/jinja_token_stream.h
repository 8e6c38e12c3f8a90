// The tokens of a template as a parser reads them, and the errors that name what was found instead.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troika/base/result.h"
#include "troika/model/jinja_lexer.h"

namespace troika::model::jinja {

class TokenStream {
 public:
  using Names = std::initializer_list<std::string_view>;

  // `tokens` ends with kEnd. `max_depth` bounds deeper().
  TokenStream(std::vector<Token> tokens, size_t max_depth)
      : max_depth_(max_depth), tokens_(std::move(tokens)) {}

 protected:
  const Token& now() const { return tokens_[position_]; }
  const Token& after() const {
    return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
  }
  void next() {
    if (position_ + 1 < tokens_.size()) ++position_;
  }
  bool is(TokenKind kind, std::string_view text) const {
    return now().kind == kind && now().text == text;
  }
  bool is_symbol(std::string_view text) const { return is(TokenKind::kOperator, text); }
  bool is_name(std::string_view text) const { return is(TokenKind::kName, text); }
  bool take_symbol(std::string_view text) { return is_symbol(text) && (next(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (next(), true); }

  template <class... Args>
  tl::unexpected<Error> fail(ErrorCode code, int line, fmt::format_string<Args...> format,
                             Args&&... args) const {
    return make_error(code, "chat template, line {}: {}", line,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kText:
        return "text";
      case TokenKind::kVariableBegin:
        return "'{{'";
      case TokenKind::kVariableEnd:
        return "'}}'";
      case TokenKind::kBlockBegin:
        return "'{%'";
      case TokenKind::kBlockEnd:
        return "'%}'";
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kString:
        return "a string";
      default:
        return fmt::format("'{}'", token.text.substr(0, 40));
    }
  }

  tl::unexpected<Error> unexpected(std::string_view wanted) const {
    return fail(ErrorCode::kInvalidData, now().line, "expected {}, found {}", wanted,
                describe(now()));
  }

  Status expect(TokenKind kind, std::string_view wanted) {
    if (now().kind != kind) return unexpected(wanted);
    next();
    return {};
  }
  Status expect_symbol(std::string_view text) {
    if (!take_symbol(text)) return unexpected(fmt::format("'{}'", text));
    return {};
  }
  Status expect_name(std::string_view text) {
    if (!take_name(text)) return unexpected(fmt::format("'{}'", text));
    return {};
  }
  Result<std::string> any_name() {
    if (now().kind != TokenKind::kName) return unexpected("a name");
    std::string name = now().text;
    next();
    return name;
  }

  // Runs one level of recursive descent deeper, within the bound.
  template <class Parse>
  auto deeper(Parse parse) -> decltype(parse()) {
    if (depth_ >= max_depth_) {
      return fail(ErrorCode::kInvalidData, now().line, "nested deeper than {} levels", max_depth_);
    }
    ++depth_;
    auto result = parse();
    --depth_;
    return result;
  }

  size_t max_depth_;

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
  size_t depth_ = 0;
};

}  // namespace troika::model::jinja
