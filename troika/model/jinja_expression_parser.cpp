#include "troika/model/jinja_expression_parser.h"

#include <algorithm>
#include <charconv>

#include "troika/model/jinja_builtins.h"
#include "troika/model/jinja_print.h"

// Takes the value of a Result<ExprPtr> or returns its error.
#define TRY_EXPR(lhs, expr) ASSIGN_OR_RETURN(ExprPtr lhs, expr)

namespace troika::model::jinja {

ExprPtr ExpressionParser::make(ExprKind kind, int line, std::string text) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  expr->text = std::move(text);
  return expr;
}

Status ExpressionParser::add(Expr& parent, ExprPtr child) const {
  if (child) RETURN_IF_ERROR(grow(parent, *child));
  parent.children.push_back(std::move(child));
  return {};
}

Status ExpressionParser::grow(Expr& parent, const Expr& child) const {
  parent.depth = std::max(parent.depth, child.depth + 1);
  if (parent.depth > max_depth_) {
    return fail(ErrorCode::kInvalidData, parent.line, "an expression nested deeper than {} levels",
                max_depth_);
  }
  return {};
}

bool ExpressionParser::is_tuple_end(Names ends) const {
  if (now().kind == TokenKind::kVariableEnd || now().kind == TokenKind::kBlockEnd) return true;
  if (is_symbol(")")) return true;
  for (const std::string_view end : ends) {
    if (is_name(end)) return true;
  }
  return false;
}

Result<ExprPtr> ExpressionParser::tuple_or_expression(Names ends, bool conditional,
                                                      bool in_parentheses) {
  const int line = now().line;
  auto tuple = make(ExprKind::kTuple, line);
  bool is_tuple = false;
  while (!is_tuple_end(ends)) {
    TRY_EXPR(item, conditional ? expression() : deeper([&] { return any_of(); }));
    RETURN_IF_ERROR(add(*tuple, std::move(item)));
    if (!take_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (!tuple->children.empty()) return std::move(tuple->children[0]);
  if (in_parentheses) return tuple;
  return unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::expression() {
  return deeper([&]() -> Result<ExprPtr> { return conditional(); });
}

Result<ExprPtr> ExpressionParser::conditional() {
  const int line = now().line;
  ++branches_;  // whether it runs is known only at the end
  auto value_or = any_of();
  --branches_;
  ASSIGN_OR_RETURN(ExprPtr value, std::move(value_or));
  if (!is_name("if")) {
    if (branches_ == 0) RETURN_IF_ERROR(require_known(*value));
    return value;
  }
  while (take_name("if")) {
    auto out = make(ExprKind::kConditional, line);
    ++branches_;
    TRY_EXPR(condition, any_of());
    ExprPtr otherwise;
    if (take_name("else")) {
      ASSIGN_OR_RETURN(otherwise, expression());
    }
    --branches_;
    RETURN_IF_ERROR(add(*out, std::move(value)));
    RETURN_IF_ERROR(add(*out, std::move(condition)));
    RETURN_IF_ERROR(add(*out, std::move(otherwise)));
    value = std::move(out);
  }
  return value;
}

Status ExpressionParser::require_known(const Expr& expr) const {
  if (expr.kind == ExprKind::kFilter && find_filter(expr.text) == nullptr) {
    return fail(ErrorCode::kUnsupported, expr.line, "the filter '{}' is not supported",
                expr.text.substr(0, 40));
  }
  if (expr.kind == ExprKind::kTest && find_test(expr.text) == nullptr) {
    return fail(ErrorCode::kUnsupported, expr.line, "the test '{}' is not supported",
                expr.text.substr(0, 40));
  }
  if (expr.kind == ExprKind::kConditional) return {};
  for (const ExprPtr& child : expr.children) {
    if (child) RETURN_IF_ERROR(require_known(*child));
  }
  return {};
}

Result<ExprPtr> ExpressionParser::any_of() {
  TRY_EXPR(first, all_of());
  if (!is_name("or")) return first;
  auto out = make(ExprKind::kOr, now().line);
  RETURN_IF_ERROR(add(*out, std::move(first)));
  while (take_name("or")) {
    TRY_EXPR(item, all_of());
    RETURN_IF_ERROR(add(*out, std::move(item)));
  }
  return out;
}

Result<ExprPtr> ExpressionParser::all_of() {
  TRY_EXPR(first, negation());
  if (!is_name("and")) return first;
  auto out = make(ExprKind::kAnd, now().line);
  RETURN_IF_ERROR(add(*out, std::move(first)));
  while (take_name("and")) {
    TRY_EXPR(item, negation());
    RETURN_IF_ERROR(add(*out, std::move(item)));
  }
  return out;
}

Result<ExprPtr> ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  auto out = make(ExprKind::kNot, now().line);
  next();
  TRY_EXPR(value, deeper([&] { return negation(); }));
  RETURN_IF_ERROR(add(*out, std::move(value)));
  return out;
}

bool ExpressionParser::take_comparison(Operator& op) {
  static constexpr std::pair<std::string_view, Operator> kSymbols[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};
  for (const auto& [symbol, value] : kSymbols) {
    if (!take_symbol(symbol)) continue;
    op = value;
    return true;
  }
  if (take_name("in")) {
    op = Operator::kIn;
    return true;
  }
  if (is_name("not") && after().kind == TokenKind::kName && after().text == "in") {
    next();
    next();
    op = Operator::kNotIn;
    return true;
  }
  return false;
}

Result<ExprPtr> ExpressionParser::comparison() {
  const int line = now().line;
  TRY_EXPR(first, sum());
  Operator op;
  if (!take_comparison(op)) return first;
  auto out = make(ExprKind::kCompare, line);
  RETURN_IF_ERROR(add(*out, std::move(first)));
  do {
    out->operators.push_back(op);
    TRY_EXPR(item, sum());
    RETURN_IF_ERROR(add(*out, std::move(item)));
  } while (take_comparison(op));
  return out;
}

template <class Parse>
Result<ExprPtr> ExpressionParser::chain(Symbols symbols, Parse operand) {
  const int line = now().line;
  TRY_EXPR(first, operand());
  ExprPtr out;
  for (bool found = true; found;) {
    found = false;
    for (const auto& [symbol, op] : symbols) {
      if (!take_symbol(symbol)) continue;
      found = true;
      if (!out) {
        out = make(ExprKind::kArithmetic, line);
        RETURN_IF_ERROR(add(*out, std::move(first)));
      }
      out->operators.push_back(op);
      TRY_EXPR(item, operand());
      RETURN_IF_ERROR(add(*out, std::move(item)));
      break;
    }
  }
  return out ? std::move(out) : std::move(first);
}

Result<ExprPtr> ExpressionParser::sum() {
  return chain({{"+", Operator::kAdd}, {"-", Operator::kSubtract}}, [&] { return concat(); });
}

Result<ExprPtr> ExpressionParser::concat() {
  TRY_EXPR(first, product());
  if (!is_symbol("~")) return first;
  auto out = make(ExprKind::kConcat, now().line);
  RETURN_IF_ERROR(add(*out, std::move(first)));
  while (take_symbol("~")) {
    TRY_EXPR(item, product());
    RETURN_IF_ERROR(add(*out, std::move(item)));
  }
  return out;
}

Result<ExprPtr> ExpressionParser::product() {
  return chain({{"*", Operator::kMultiply},
                {"/", Operator::kDivide},
                {"//", Operator::kFloorDivide},
                {"%", Operator::kModulo}},
               [&] { return power(); });
}

Result<ExprPtr> ExpressionParser::power() {
  return chain({{"**", Operator::kPower}}, [&] { return unary(true); });
}

Result<ExprPtr> ExpressionParser::unary(bool with_filter) {
  const int line = now().line;
  ExprPtr out;
  if (is_symbol("-") || is_symbol("+")) {
    out = make(is_symbol("-") ? ExprKind::kNegate : ExprKind::kPlus, line);
    next();
    TRY_EXPR(value, deeper([&] { return unary(false); }));
    RETURN_IF_ERROR(add(*out, std::move(value)));
  } else {
    ASSIGN_OR_RETURN(out, primary());
    ASSIGN_OR_RETURN(out, postfix(std::move(out)));
  }
  return with_filter ? filters_and_tests(std::move(out)) : Result<ExprPtr>(std::move(out));
}

Result<ExprPtr> ExpressionParser::primary() {
  const Token token = now();
  if (token.kind == TokenKind::kName) return name_or_constant(token);
  if (token.kind == TokenKind::kString) {
    auto out = make(ExprKind::kString, token.line);
    for (; now().kind == TokenKind::kString; next()) out->text += now().text;
    return out;
  }
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return number(token);
  if (take_symbol("(")) {
    TRY_EXPR(out, tuple_or_expression({}, true, true));
    RETURN_IF_ERROR(expect_symbol(")"));
    return out;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  return unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::name_or_constant(const Token& token) {
  next();
  const std::string& text = token.text;
  if (text == "none" || text == "None") return make(ExprKind::kNone, token.line);
  const bool is_true = text == "true" || text == "True";
  if (is_true || text == "false" || text == "False") {
    auto out = make(ExprKind::kBool, token.line);
    out->integer = is_true ? 1 : 0;
    return out;
  }
  return make(ExprKind::kName, token.line, text);
}

Result<ExprPtr> ExpressionParser::number(const Token& token) {
  next();
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::kFloat) {
    auto out = make(ExprKind::kFloat, token.line);
    out->number = parse_double(token.text).value_or(0);  // the lexer took only digits
    return out;
  }
  auto out = make(ExprKind::kInteger, token.line);
  if (std::from_chars(begin, end, out->integer).ec != std::errc()) {
    return fail(ErrorCode::kInvalidData, token.line, "the integer {} is larger than 64 bits",
                token.text.substr(0, 40));
  }
  return out;
}

Result<ExprPtr> ExpressionParser::list() {
  auto out = make(ExprKind::kList, now().line);
  next();
  while (!is_symbol("]")) {
    if (!out->children.empty()) {
      RETURN_IF_ERROR(expect_symbol(","));
      if (is_symbol("]")) break;
    }
    TRY_EXPR(item, expression());
    RETURN_IF_ERROR(add(*out, std::move(item)));
  }
  next();
  return out;
}

Result<ExprPtr> ExpressionParser::dict() {
  auto out = make(ExprKind::kDict, now().line);
  next();
  while (!is_symbol("}")) {
    if (!out->children.empty()) {
      RETURN_IF_ERROR(expect_symbol(","));
      if (is_symbol("}")) break;
    }
    TRY_EXPR(key, expression());
    RETURN_IF_ERROR(add(*out, std::move(key)));
    RETURN_IF_ERROR(expect_symbol(":"));
    TRY_EXPR(value, expression());
    RETURN_IF_ERROR(add(*out, std::move(value)));
  }
  next();
  return out;
}

Result<ExprPtr> ExpressionParser::postfix(ExprPtr value) {
  for (;;) {
    if (is_symbol(".")) {
      ASSIGN_OR_RETURN(value, attribute(std::move(value)));
    } else if (is_symbol("[")) {
      ASSIGN_OR_RETURN(value, subscript(std::move(value)));
    } else if (is_symbol("(")) {
      ASSIGN_OR_RETURN(value, call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExprPtr> ExpressionParser::filters_and_tests(ExprPtr value) {
  for (;;) {
    if (is_symbol("|")) {
      ASSIGN_OR_RETURN(value, filter(std::move(value)));
    } else if (is_name("is")) {
      ASSIGN_OR_RETURN(value, test(std::move(value)));
    } else if (is_symbol("(")) {
      ASSIGN_OR_RETURN(value, call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExprPtr> ExpressionParser::attribute(ExprPtr value) {
  const int line = now().line;
  next();
  if (now().kind == TokenKind::kInteger) {
    auto out = make(ExprKind::kSubscript, line);
    RETURN_IF_ERROR(add(*out, std::move(value)));
    TRY_EXPR(index, number(Token(now())));
    RETURN_IF_ERROR(add(*out, std::move(index)));
    return out;
  }
  ASSIGN_OR_RETURN(std::string name, any_name());
  auto out = make(ExprKind::kAttribute, line, std::move(name));
  RETURN_IF_ERROR(add(*out, std::move(value)));
  return out;
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr value) {
  auto out = make(ExprKind::kSubscript, now().line);
  next();
  RETURN_IF_ERROR(add(*out, std::move(value)));
  TRY_EXPR(index, slice_or_index());
  RETURN_IF_ERROR(add(*out, std::move(index)));
  if (is_symbol(",")) {
    return fail(ErrorCode::kUnsupported, now().line, "several indexes in one subscript");
  }
  RETURN_IF_ERROR(expect_symbol("]"));
  return out;
}

Result<ExprPtr> ExpressionParser::slice_or_index() {
  auto out = make(ExprKind::kSlice, now().line);
  ExprPtr part;
  if (!is_symbol(":")) {
    ASSIGN_OR_RETURN(part, expression());
    if (!is_symbol(":")) return part;
  }
  for (int i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(add(*out, std::move(part)));
    part = nullptr;
    if (i < 2 && take_symbol(":") && !is_symbol(":") && !is_symbol("]")) {
      ASSIGN_OR_RETURN(part, expression());
    }
  }
  return out;
}

Status ExpressionParser::arguments(Expr& out) {
  RETURN_IF_ERROR(expect_symbol("("));
  for (bool first = true; !is_symbol(")"); first = false) {
    if (!first) {
      RETURN_IF_ERROR(expect_symbol(","));
      if (is_symbol(")")) break;
    }
    if (is_symbol("*") || is_symbol("**")) {
      return fail(ErrorCode::kUnsupported, now().line, "unpacked arguments ({})", now().text);
    }
    if (now().kind == TokenKind::kName && after().kind == TokenKind::kOperator &&
        after().text == "=") {
      Keyword keyword;
      keyword.name = now().text;
      next();
      next();
      ASSIGN_OR_RETURN(keyword.value, expression());
      RETURN_IF_ERROR(grow(out, *keyword.value));
      out.keywords.push_back(std::move(keyword));
      continue;
    }
    if (!out.keywords.empty()) return unexpected("a named argument");
    TRY_EXPR(value, expression());
    RETURN_IF_ERROR(add(out, std::move(value)));
  }
  next();
  return {};
}

Result<ExprPtr> ExpressionParser::call(ExprPtr callee) {
  auto out = make(ExprKind::kCall, now().line);
  RETURN_IF_ERROR(add(*out, std::move(callee)));
  RETURN_IF_ERROR(arguments(*out));
  return out;
}

Result<ExprPtr> ExpressionParser::filter(ExprPtr value) {
  const int line = now().line;
  next();
  ASSIGN_OR_RETURN(std::string name, any_name());
  auto out = make(ExprKind::kFilter, line, std::move(name));
  RETURN_IF_ERROR(add(*out, std::move(value)));
  if (is_symbol("(")) RETURN_IF_ERROR(arguments(*out));
  return out;
}

Result<ExprPtr> ExpressionParser::test(ExprPtr value) {
  const int line = now().line;
  next();
  const bool negated = take_name("not");
  ASSIGN_OR_RETURN(std::string name, any_name());
  auto out = make(ExprKind::kTest, line, std::move(name));
  RETURN_IF_ERROR(add(*out, std::move(value)));
  if (is_symbol("(")) {
    RETURN_IF_ERROR(arguments(*out));
  } else if (begins_argument()) {
    TRY_EXPR(argument, primary());
    ASSIGN_OR_RETURN(argument, postfix(std::move(argument)));
    RETURN_IF_ERROR(add(*out, std::move(argument)));
  }
  if (!negated) return out;
  auto inverse = make(ExprKind::kNot, line);
  RETURN_IF_ERROR(add(*inverse, std::move(out)));
  return inverse;
}

bool ExpressionParser::begins_argument() const {
  switch (now().kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kOperator:
      return now().text == "[" || now().text == "{";
    case TokenKind::kName:
      return !is_name("else") && !is_name("or") && !is_name("and") && !is_name("is") &&
             !is_name("if") && !is_name("not") && !is_name("in");
    default:
      return false;
  }
}

}  // namespace troika::model::jinja
